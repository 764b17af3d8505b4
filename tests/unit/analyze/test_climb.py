"""Latency over load: what the runs of an arm together say of each rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.unit.analyze import synthetic

from tare.analyze.climb import Step, climb_of
from tare.record.run_record import RunRecord


def climbed(latencies: Sequence[float | None], arm: str = "bare", block: int = 0, **changed: Any) -> RunRecord:
    """Rates of 100, 200, …; the bound is 5 ms."""
    rungs = [
        {"rate_per_s": 100.0 * n, "done_per_s": 100.0 * n, "latency_ms": ms, "missed": 0 if ms is not None else 7}
        for n, ms in enumerate(latencies, start=1)
    ]
    held = sum(ms is not None and ms <= 5.0 for ms in latencies)
    sustained = {
        "rate_per_s": 100.0 * held + 50.0,
        "resolution": 0.1,
        "quantile": "p99",
        "within_ms": 5.0,
        "contradicting": 0,
        "rungs": rungs,
        **changed,
    }
    return synthetic.changed(
        synthetic.record(block, arm, 1.0), lambda tree: tree["measurement"].update(sustained=sustained)
    )


def test_each_rate_has_the_median_of_its_runs() -> None:
    climb = climb_of([climbed([1.0, 4.0, 9.0]), climbed([3.0, 6.0, None]), climbed([2.0, 3.0, 30.0])])
    assert climb is not None
    assert [(step.rate_per_s, step.latency_ms) for step in climb.steps] == [
        (100.0, 2.0),
        (200.0, 4.0),
        (300.0, 19.5),
    ]
    assert climb.steps[-1].missed == 7
    assert climb.rate_per_s == 250.0


def test_a_rate_at_which_most_runs_had_no_reply_has_no_latency() -> None:
    climb = climb_of([climbed([1.0, None]), climbed([1.0, None]), climbed([1.0, 9.0])])
    assert climb is not None
    assert climb.steps[-1] == Step(200.0, None, 14)


def test_runs_that_did_not_climb_or_not_to_one_bound_have_no_curve() -> None:
    assert climb_of([]) is None
    assert climb_of([synthetic.record(0, "bare", 1.0)]) is None
    assert climb_of([climbed([1.0, 9.0]), climbed([1.0, 9.0], within_ms=8.0)]) is None
