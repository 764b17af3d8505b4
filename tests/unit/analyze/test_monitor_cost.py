from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.metrics import MONITOR_CPU, metric_named, metrics_of
from tare.run.record import RunRecord

PROBE = {"cpu_s": 0.02, "began_monotonic_s": 0.0, "ended_monotonic_s": 20.0, "engine_cpu_s": 0.05}
MPSTAT = {"cpu_s": 0.01, "began_monotonic_s": 5.0, "ended_monotonic_s": 15.0}
USAGE = {"began_monotonic_s": 5.0, "ended_monotonic_s": 15.0}


def run(**changes: Any) -> RunRecord:
    record = synthetic.records()[0]
    return record.model_copy(update={"usage": USAGE, **changes})


def test_monitors_and_the_engine_that_works_for_them_are_added_up() -> None:
    found = MONITOR_CPU.of(run(monitors={"probe": PROBE, "mpstat": MPSTAT}))
    assert found == pytest.approx(1.0 + 1.0 + 5.0)


def test_a_monitor_that_was_not_there_cost_nothing() -> None:
    found = MONITOR_CPU.of(run(monitors={"probe": PROBE, "docker-stats": {"absent": "nothing to watch"}}))
    assert found == pytest.approx(6.0)


def test_a_monitor_whose_time_is_not_known_is_not_free() -> None:
    assert MONITOR_CPU.of(run(monitors={"probe": PROBE, "sar": {**MPSTAT, "cpu_s": None}})) is None
    assert MONITOR_CPU.of(run(monitors=None)) is None
    assert MONITOR_CPU.of(run(monitors={"probe": PROBE}, usage=None)) is None


def test_the_metric_is_told_where_arms_are_watched_differently() -> None:
    plain = run()
    watched = run(settings={**plain.settings, "monitors": {"mpstat": {}}})
    assert MONITOR_CPU not in metrics_of([plain, plain])
    assert MONITOR_CPU in metrics_of([plain, watched])
    assert metric_named("monitor_cpu") is MONITOR_CPU
