"""The study of `make bench-start` and its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from bench.start.table import rows, table
from tare.run.record import RunRecord
from tare.study.model import Study
from tare.study.reading.load import load
from tare.study.registry import installed

ARMS = ("bare", "bridge")


@pytest.fixture(scope="module")
def study() -> Study:
    return load(Path(__file__).resolve().parents[3] / "bench" / "start" / "study.yaml", installed())


def run(block: int, arm: str, load_s: float, *, ok: bool = True) -> RunRecord:
    def alter(tree: dict[str, Any]) -> None:
        seconds = {"provision": 0.5, "load": load_s, "measure": 60.0, "collect": 0.5, "teardown": 0.25}
        tree["phases"] = [{"phase": phase, "began_at": 1.0, "seconds": lasted} for phase, lasted in seconds.items()]
        tree["outcome"] = {"ok": ok, "reason": None if ok else "it failed", "failed_in": None}

    return synthetic.changed(synthetic.record(block, arm, 100.0), alter)


def test_every_deployment_is_started(study: Study) -> None:
    assert {arm.settings.sut.deployment for arm in study.arms} == {"bare", "container", "vm", "vm-container"}


def test_starting_is_provision_and_load_stopping_collect_and_teardown() -> None:
    made = [run(1, "bare", 1.0), run(2, "bare", 2.5), run(3, "bare", 2.0), run(4, "bare", 60.0, ok=False)]
    bare, bridge = rows(synthetic.study(ARMS), made, {"bare": ("sut",)})
    assert bare == ["(emulated) bare", "2.5", "1.5 to 3", "0.75", "0.75 to 0.75", "3"]
    assert bridge == ["(baseline emulated) bridge", "-", "-", "-", "-", "0"]
    assert table([bare]).splitlines()[-3] == f"| {' | '.join(bare)} |"
