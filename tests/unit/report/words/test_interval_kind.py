"""Every format says by which kind of interval it judges."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze.validity.test_control import controlled, records
from tests.unit.report.words.test_headlines import FORMATS, flat

from tare.report import EXPORTERS
from tare.report.content import build_report
from tare.study.protocol_spec import InterleaveSpec

KINDS = {
    "set": "t intervals",
    "t-mixture": "hold at every look (t-mixture)",
    "sign-flip": "hold at every look by the random order alone",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", FORMATS)
def test_the_kind_of_interval_is_told(kind: str, style: str) -> None:
    keys: dict[str, Any] = {} if kind == "set" else {"looks": "any", "anytime": kind}
    changes = {"protocol": InterleaveSpec(**keys), "margins": {"throughput": 0.05}}
    report = build_report(controlled().model_copy(update=changes), records(0.002, blocks=20))
    text = flat(EXPORTERS[style](report))
    assert KINDS[kind] in text
    assert ("two one-sided t tests" in text) is (kind == "set")
