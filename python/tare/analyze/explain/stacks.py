"""Stacks of an arm and of its baseline, for flame graphs and other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.analyze.explain.run_times import RawFile, RunTimes, run_times
from tare.analyze.explain.sampled import OF_OPERATION
from tare.analyze.runs import select_runs
from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.study.model import Study


@dataclass(frozen=True)
class ArmStacks:
    """Stacks of an arm and its baseline.

    `stacks`, `baseline_stacks`: collapsed stack that begins with side and command → mean µs for one operation over
    the runs. `baseline_stacks` may be empty.
    """

    study: str
    arm: str
    baseline: str
    stacks: Mapping[str, float]
    baseline_stacks: Mapping[str, float]
    runs: int


def stacks_of(study: Study, records: Sequence[RunRecord], arm: str, raw: RawFile) -> ArmStacks:
    """Read the stacks of an arm. Raises `StoreError` if no run of the arm was sampled."""
    runs = select_runs(study, records)
    baseline = study.baseline_of(arm)
    times_by_arm: dict[str, list[RunTimes]] = {arm: [], baseline: []}
    for (_, name), record in runs.good.items():
        times = run_times(record, raw) if name in times_by_arm else None
        if times is not None and times.cpu_us is not None:
            times_by_arm[name].append(times)
    if not times_by_arm[arm]:
        raise StoreError(
            f"no run of {arm} has sampled stacks",
            hint="`tare run --profile` samples them; use a new store for it",
        )
    return ArmStacks(
        study.name, arm, baseline, mean(times_by_arm[arm]), mean(times_by_arm[baseline]), len(times_by_arm[arm])
    )


def mean(runs: Sequence[RunTimes]) -> Mapping[str, float]:
    """Mean over runs; a stack that a run lacks took no time there."""
    lines: dict[str, list[float]] = {}
    for run in runs:
        for (side, stack), used in run.stacks_us.items():
            if side in OF_OPERATION:
                lines.setdefault(f"{side};{stack}", []).append(used)
    return {stack: fmean(used) * len(used) / len(runs) for stack, used in sorted(lines.items())}
