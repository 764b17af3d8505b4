"""A client that warms up and measures in one process: started in the warm-up, metered in the measure phase."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tare.run.record import Phase
from tare.workloads import ClientCommand, Parameters, Target
from tare.workloads.fake import FakeWorkload
from tare.workloads.registry import BUILT_IN

WARMUP_S, MEASURE_S = 0.6, 0.4


class OneProcess(FakeWorkload):
    """The fake, which drives through both phases."""

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:
        return None

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        whole_s = parameters.warmup_s + parameters.measure_s
        command = super().measure(parameters.model_copy(update={"measure_s": whole_s}), target, run_dir)
        return replace(command, own_warmup_s=parameters.warmup_s)


@pytest.fixture
def one(rig: Any, plans: Any) -> Any:
    rig.swap(workloads={**BUILT_IN, "fake": OneProcess()})
    return rig


def test_the_warm_up_is_a_phase_of_its_own_and_no_process(one: Any, plans: Any) -> None:
    (record,) = one.execute(plans(warmup_s=WARMUP_S, measure_s=MEASURE_S))
    assert record.outcome.ok, record.outcome
    seconds = {time.phase: time.seconds for time in record.phases}
    assert WARMUP_S <= seconds[Phase.WARM_UP] < WARMUP_S + 5
    assert "warm-up.stdout" not in record.raw
    assert one.leftovers == []


def test_cpu_time_is_counted_from_the_end_of_the_warm_up(one: Any, plans: Any) -> None:
    (record,) = one.execute(plans(warmup_s=WARMUP_S, measure_s=MEASURE_S))
    warm_up = next(time for time in record.phases if time.phase is Phase.WARM_UP)
    assert record.usage["began_monotonic_s"] >= warm_up.monotonic_s + WARMUP_S


def test_a_client_that_dies_in_its_warm_up_fails_the_run(one: Any, plans: Any) -> None:
    (record,) = one.execute(plans(warmup_s=WARMUP_S, measure_s=MEASURE_S, fault="crash"))
    assert not record.outcome.ok
    assert "told to crash" in record.outcome.reason
    assert one.leftovers == []
