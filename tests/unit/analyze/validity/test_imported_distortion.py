"""Figures of other tools that are known to be distorted are said to be, with the runs that have them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze import analyze
from tare.analyze.validity import Alarm
from tare.analyze.validity.distortions import DISTORTIONS
from tare.study.model import Imported


def alarms(distorted: dict[str, tuple[str, ...]], *, imported: bool = True) -> list[Alarm]:
    """`distorted`: arm → distortions of its runs."""

    def change(tree: dict[str, Any]) -> None:
        source = {"file": "run.log", "sha256": "0" * 64}
        tree["imported"] = {**source, "distortions": list(distorted.get(tree["arm"], ()))}

    source = Imported(origin="elsewhere", parser="ycsb", files=1) if imported else None
    runs = [synthetic.changed(run, change) for run in synthetic.records()]
    analysis = analyze(synthetic.study(imported=source), runs)
    return [alarm for alarm in analysis.alarms if alarm.rule == "imported-distortion"]


@pytest.mark.parametrize("name", DISTORTIONS)
def test_each_distortion_is_told_once_with_its_runs(name: str) -> None:
    (alarm,) = alarms({"bare": (name,), "bridge": (name,)})
    what = DISTORTIONS[name].what.format(worst="an unknown share")
    assert (alarm.what, alarm.do) == (what, DISTORTIONS[name].remedy)
    assert len(alarm.runs) == 10
    assert {run.split("-", 2)[2] for run in alarm.runs} == {"bare", "bridge"}


def test_runs_without_a_distortion_raise_no_alarm() -> None:
    assert alarms({}) == []
    assert alarms({"bare": tuple(DISTORTIONS)}, imported=False) == []
