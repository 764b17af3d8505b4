from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze import analyze
from tare.analyze.metrics import MONITOR_CPU, metric_named, metrics_of
from tare.record.monitor import MonitorFacts
from tare.record.run_record import RunRecord
from tare.record.usage import Usage

PROBE = MonitorFacts(cpu_s=0.02, began_monotonic_s=0.0, ended_monotonic_s=20.0, engine_cpu_s=0.05)
MPSTAT = MonitorFacts(cpu_s=0.01, began_monotonic_s=5.0, ended_monotonic_s=15.0)
USAGE = Usage(began_monotonic_s=5.0, ended_monotonic_s=15.0)


def run(**changes: Any) -> RunRecord:
    record = synthetic.records()[0]
    return record.model_copy(update={"usage": USAGE, **changes})


def test_monitors_and_the_engine_that_works_for_them_are_added_up() -> None:
    value = MONITOR_CPU.of(run(monitors={"probe": PROBE, "mpstat": MPSTAT}))
    assert value == pytest.approx(1.0 + 1.0 + 5.0)


def test_a_monitor_that_was_not_there_cost_nothing() -> None:
    value = MONITOR_CPU.of(run(monitors={"probe": PROBE, "docker-stats": MonitorFacts(absent="nothing to watch")}))
    assert value == pytest.approx(6.0)


def test_a_monitor_whose_time_is_not_known_is_not_free() -> None:
    assert MONITOR_CPU.of(run(monitors={"probe": PROBE, "sar": MPSTAT.model_copy(update={"cpu_s": None})})) is None
    assert MONITOR_CPU.of(run(monitors=None)) is None
    assert MONITOR_CPU.of(run(monitors={"probe": PROBE}, usage=None)) is None


def test_the_metric_is_told_where_arms_are_watched_differently() -> None:
    plain = run()
    watched = run(settings={**plain.settings, "monitors": {"mpstat": {}}})
    assert MONITOR_CPU not in metrics_of([plain, plain])
    assert MONITOR_CPU in metrics_of([plain, watched])
    assert metric_named("monitor_cpu") is MONITOR_CPU


def test_what_watching_costs_and_does_is_an_estimate_of_the_arm_that_is_watched() -> None:
    """A monitor on or off is a factor: its own time, what it causes in the engine, what the workload loses."""
    busier = {"probe": PROBE.model_copy(update={"engine_cpu_s": 0.15}), "docker-stats": MPSTAT}
    made = []
    for block, tps in enumerate((1000.0, 1100.0, 900.0)):
        off, on = (
            synthetic.record(block, "bare", tps),
            synthetic.record(block, "bridge", tps * (0.95 - block / 1000)),
        )
        off = off.model_copy(update={"usage": USAGE, "monitors": {"probe": PROBE}})
        watched = {**on.settings, "monitors": {"docker-stats": {"interval_s": 1.0}}}
        made += [off, on.model_copy(update={"usage": USAGE, "monitors": busier, "settings": watched})]
    analysis = analyze(synthetic.study(("bare", "bridge")), made)
    effect, cost = analysis.finding("bridge", "throughput"), analysis.finding("bridge", "monitor_cpu")
    assert effect.estimate.point == pytest.approx(-0.051, abs=0.0005)
    assert effect.estimate.n == 3
    assert effect.excludes_zero
    # 1 ms/s of the probe and 5 of the engine without it; 1 of its own and 10 more of the engine with it.
    assert cost.estimate.point == pytest.approx(17 / 6 - 1)
