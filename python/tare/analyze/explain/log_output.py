"""CPU time that an engine spends on a server's log output, charged to the arm that prints it. Pure.

The engine's daemons serve all containers, so no run tells what they did for its own. What they used more beside an
arm than beside its baseline in the same block does, if the arm also printed more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.analyze.explain.parts import Part, part_of
from tare.analyze.runs import Runs, select_runs
from tare.record.run_record import RunRecord
from tare.study.model import Study

LOG_OUTPUT, TITLE = "log-output", "log output"
"""Cause of the time, and its title."""
LEAST_PER_S = 10_000.0
"""Bytes per second between arm and baseline, below which an engine needs too little CPU time to be charged."""
_US = 1e6


@dataclass(frozen=True)
class LogOutput:
    """An arm whose log output is why its engine used more CPU time than beside the baseline, or less.

    `part`: microseconds of the engine's daemons and the SUT's shims for one operation; its baseline is what they
    used beside the baseline in the same time. `bytes`, `baseline_bytes`: printed for one operation.
    """

    arm: str
    baseline: str
    part: Part
    bytes: float
    baseline_bytes: float


@dataclass(frozen=True)
class _Rates:
    engine_cpus: float
    printed_per_s: float
    operations_per_s: float

    @property
    def bytes(self) -> float:
        return self.printed_per_s / self.operations_per_s


def log_outputs(study: Study, records: Sequence[RunRecord]) -> tuple[LogOutput, ...]:
    """Return arms whose log output changes the engine's CPU time, as far as intervals show it."""
    if study.imported is not None:
        return ()
    runs = select_runs(study, records)
    named = [(arm.name, study.baseline_of(arm.name)) for arm in study.arms if not arm.control]
    found = (_of_arm(runs, arm, baseline) for arm, baseline in named if arm != baseline)
    return tuple(each for each in found if each is not None)


def _of_arm(runs: Runs, arm: str, baseline: str) -> LogOutput | None:
    places = [(runs.good.get((block, arm)), runs.good.get((block, baseline))) for block in runs.blocks]
    pairs = [(_rates(mine), _rates(theirs)) for mine, theirs in places if mine and theirs]
    known = [(mine, theirs) for mine, theirs in pairs if mine and theirs]
    if not known:
        return None
    more_per_s = fmean(mine.printed_per_s - theirs.printed_per_s for mine, theirs in known)
    each_us = [_US / mine.operations_per_s for mine, _ in known]
    used = [
        (mine.engine_cpus * us, theirs.engine_cpus * us) for (mine, theirs), us in zip(known, each_us, strict=True)
    ]
    part = part_of(LOG_OUTPUT, TITLE, used)
    added = part.change
    shown = added.shown or added.low is None
    if abs(more_per_s) < LEAST_PER_S or not shown or (added.added_us > 0) is not (more_per_s > 0):
        return None
    return LogOutput(
        arm, baseline, part, fmean(mine.bytes for mine, _ in known), fmean(theirs.bytes for _, theirs in known)
    )


def _rates(run: RunRecord) -> _Rates | None:
    """Rates of a run; `None` if one is unknown. No engine passes on the output of a bare program."""
    usage, operations = run.usage, run.measurement and run.measurement.operations
    if usage is None or usage.engine_cpu_s is None or not usage.over_s or not operations:
        return None
    printed = usage.sut_output_bytes
    if printed is None:
        sut = run.settings.get("sut")
        if not isinstance(sut, Mapping) or sut.get("deployment") != "bare":
            return None
        printed = 0.0
    return _Rates(usage.engine_cpu_s / usage.over_s, printed / usage.over_s, operations / usage.over_s)
