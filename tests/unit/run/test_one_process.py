"""A client that warms up and measures in one process: started in the warm-up, metered in the measure phase."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tare.record.run_record import Phase
from tare.study.protocol_spec import DuetSpec
from tare.workloads import ClientCommand, Measurement, Parameters, Target
from tare.workloads.fake import FakeWorkload
from tare.workloads.registry import BUILT_IN

WARMUP_S, MEASURE_S = 0.6, 0.4


class OneProcess(FakeWorkload):
    """The fake, which drives through both phases."""

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:
        return None

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        command = super().measure(_whole(parameters), target, run_dir)
        return replace(command, own_warmup_s=parameters.warmup_s)

    def parse(self, parameters: Parameters, stdout: Path, stderr: Path, code: int) -> Measurement:
        whole, warmup_s = super().parse(_whole(parameters), stdout, stderr, code), parameters.warmup_s
        ends_s = [window.end_s for window in whole.windows]
        kept = [each for each, began_s in zip(whole.windows, (0.0, *ends_s), strict=False) if began_s >= warmup_s]
        return replace(
            whole,
            duration_s=(whole.duration_s or 0.0) - warmup_s,
            windows=tuple(replace(window, end_s=window.end_s - warmup_s) for window in kept),
            started_at=None if whole.started_at is None else whole.started_at + warmup_s,
        )


def _whole(parameters: Parameters) -> Parameters:
    return parameters.model_copy(update={"measure_s": parameters.warmup_s + parameters.measure_s})


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
    assert record.usage.began_monotonic_s >= warm_up.monotonic_s + WARMUP_S


def test_a_duet_is_swapped_half_way_through_the_measuring(one: Any, plans: Any) -> None:
    """Even where its own warm-up is longer than half of that."""
    one.swap(set_cpus=lambda *_: None)
    spec = DuetSpec(name="duet", blocks=1, retries=2, seed=3)  # a busy machine may swap after the measuring
    records = one.execute(plans(protocol=spec, warmup_s=4.0, measure_s=5.0, window_s=0.1))
    good = [record for record in records if record.outcome.ok]
    assert len(good) == 2, [record.outcome for record in records]
    for record in good:
        assert record.duet.swap_began_s - record.duet.started_s >= 4.0 + 5.0 / 2


def test_a_client_that_dies_in_its_warm_up_fails_the_run(one: Any, plans: Any) -> None:
    (record,) = one.execute(plans(warmup_s=WARMUP_S, measure_s=MEASURE_S, fault="crash"))
    assert not record.outcome.ok
    assert "told to crash" in record.outcome.reason
    assert one.leftovers == []
