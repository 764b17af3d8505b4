"""Verdicts in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.unit.analyze import synthetic
from tests.unit.approved import assert_as_approved

from tare.report import EXPORTERS, terminal
from tare.report.content import build_report
from tare.report.words.verdicts import method, verdicts

ARMS = ("bare", "host", "bridge", "shared")
STUDY = synthetic.study(ARMS, 12, margins={"throughput": 0.05, "latency_p95": 0.1})
REPORT = build_report(STUDY, synthetic.records(ARMS, 12))
GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "report"


def test_each_metric_with_a_margin_has_its_line() -> None:
    first, second = verdicts(REPORT.analysis)
    assert first.startswith("throughput, ±5.0 %: different: bridge [")
    assert "; equivalent: host [" in first
    assert second.startswith("95th percentile latency, ±10.0 %: ")


def test_how_verdicts_come_about_is_said_with_the_family() -> None:
    text = method(REPORT.analysis)
    assert text is not None
    assert "over the 5 metrics of an arm (Holm)" in text
    assert method(build_report(synthetic.study(ARMS, 12), synthetic.records(ARMS, 12)).analysis) is None


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_with_verdicts_is_as_it_was_approved(width: int) -> None:
    text = terminal.render(REPORT, width=width)
    assert_as_approved(text, GOLDEN / f"verdicts-{width}.txt")
    assert max(map(len, text.splitlines())) <= width


def test_the_answer_says_what_was_shown_and_never_that_there_is_no_overhead() -> None:
    assert "host, no measurable difference in throughput (within ±1.2 %)" in REPORT.answer
    assert "bridge costs 6.2 to 7.8 % of throughput" in REPORT.answer
    assert all("no overhead" not in EXPORTERS[style](REPORT) for style in EXPORTERS)


def test_an_undecided_arm_is_told_with_what_would_decide_it() -> None:
    noisy = build_report(STUDY, synthetic.records(ARMS, 4, noise=0.05))
    assert "host, undecided (-15 to +14 % throughput; about 35 more blocks would decide, 17 min)" in noisy.answer


def test_tables_and_data_carry_the_verdict() -> None:
    page = EXPORTERS["html"](REPORT)
    assert page.count('<small class="verdict">') == 6
    assert "## Verdicts" in EXPORTERS["md"](REPORT)
    rows = list(csv.DictReader(io.StringIO(EXPORTERS["csv"](REPORT))))
    row = next(row for row in rows if (row["arm"], row["metric"]) == ("host", "throughput"))
    assert (row["margin"], row["verdict"], row["family"]) == ("0.05", "equivalent", "1")
    entries = json.loads(EXPORTERS["json"](REPORT))["findings"]
    entry = next(each for each in entries if (each["arm"], each["metric"]) == ("bridge", "latency_p95"))
    assert (entry["margin"], entry["family"]) == (0.1, 5)
    assert entry["verdict"] in {"different", "inconclusive"}
    without = [each for each in entries if each["metric"] == "latency_mean"]
    assert {each["verdict"] for each in without} == {None}
