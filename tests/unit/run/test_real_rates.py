"""What set the rate of real runs, read off cuts of their traces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import as_tree

from tare.analyze.validity.disk import Limit, limits_of
from tare.record.run_record import RunRecord
from tare.record.trace import Traces
from tare.record.usage import Usage
from tare.run.usage.disk import disk_limit_in, disk_use_in
from tare.run.usage.saturation import saturation_in

DATA = Path(__file__).parents[2] / "data" / "rate"


def run_of(name: str, disk_iops: int | None = None) -> RunRecord:
    trace = DATA / name
    usage = json.loads((trace / "usage.json").read_text())
    used, traces = Usage(**usage), Traces(trace)
    assert used.phase is not None
    result = replace(
        used,
        saturation=saturation_in(traces, used, used.phase),
        disk=disk_use_in(traces, used.phase),
        disk_limit=disk_limit_in(traces, used.load or used.phase, disk_iops),
    )

    def alter(tree: dict[str, Any]) -> None:
        tree["usage"] = as_tree(result)

    return synthetic.changed(synthetic.record(1, "bare", 1000.0), alter)


@pytest.mark.parametrize(("name", "limits"), [("cpu-bound", ("sut",))])
def test_a_real_trace_tells_what_set_the_rate(name: str, limits: tuple[Limit, ...]) -> None:
    assert limits_of(run_of(name)) == limits


def test_reads_before_their_limit_are_bound_by_it_though_the_disk_is_idle() -> None:
    limited = run_of("limited-reads", disk_iops=500)
    assert as_tree(limited.usage)["disk_limit"] == {"per_s": 500, "used": pytest.approx(0.99, abs=0.02)}
    assert as_tree(limited.usage)["disk"]["busy"] < 0.1
    assert limits_of(limited) == ("disk",)


def test_inserts_into_more_than_memory_left_the_disk_idle_for_most_of_the_time() -> None:
    usage = as_tree(run_of("cpu-bound").usage)
    assert usage["disk"]["name"] == "vda"
    assert usage["disk"]["busy"] == pytest.approx(0.265, abs=0.005)
    assert usage["disk"]["depth"] == pytest.approx(2.43, abs=0.01)
    assert usage["saturation"]["sut"]["busy"] == pytest.approx(0.979, abs=0.001)
    assert usage["saturation"]["sut"]["waiting_io"] == pytest.approx(0.100, abs=0.001)
    assert usage["saturation"]["client"]["busy"] == pytest.approx(0.129, abs=0.001)
