"""What is read of runs, and how often."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.analyze import synthetic

from tare.analyze.derived import Derivation
from tare.analyze.metrics import METRICS
from tare.analyze.runs import select_runs
from tare.record.run_record import RunRecord


def test_a_metric_is_read_once_of_each_run_however_often_it_is_asked_for() -> None:
    read: list[str] = []

    def throughput(run: RunRecord) -> float | None:
        read.append(run.run_id)
        return None if run.arm == "bare" else 2.0

    arms = ("bare", "bridge")
    runs = select_runs(synthetic.study(arms), synthetic.records(arms))
    metric = replace(METRICS["throughput"], derivation=Derivation(throughput))
    for _ in range(3):
        assert runs.values_of("bare", metric) == []
        assert runs.values_of("bridge", metric) == [2.0] * len(runs.blocks)
        assert runs.value(runs.blocks[0], "bridge", metric) == 2.0
    assert sorted(read) == sorted(run.run_id for run in runs.good.values())
