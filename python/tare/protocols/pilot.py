"""The pilot: choose the length of later measure phases from the cost and scatter of the first rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tare.record.pilot import Choice
from tare.study.protocol_spec import InterleaveSpec, Repetition
from tare.study.rules.repetition import LEAST_WINDOWS


@dataclass(frozen=True)
class Components:
    """Variance of windows within a round, and of the true means between rounds."""

    within: float
    between: float


def components(rounds: Sequence[Sequence[float]]) -> Components:
    """Split the variance of a pilot: at least two rounds of two windows, all with the same number of windows.

    One-way random effects: within = mean square within, between = (mean square between - within) / windows, and at
    least 0. Searle, Casella & McCulloch, Variance Components (1992), chapter 3.
    """
    import numpy as np  # slow to import, and only a pilot needs it

    table = np.asarray(rounds, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError("a pilot needs at least two rounds of two windows, all with the same number")
    windows = table.shape[1]
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(table.mean(axis=1).var(ddof=1)) - within / windows
    return Components(within=within, between=max(0.0, between))


def windows_per_round(variances: Components, restart_s: float, window_s: float, most: int) -> int:
    """Return the windows that give the narrowest interval for the time: √(restart_s / window_s · within / between).

    Between 1 and `most`; `most` if rounds do not differ. Cochran, Sampling Techniques (1977), section 10.6
    (two-stage sampling with a linear cost); for benchmarks Kalibera & Jones, "Rigorous benchmarking in reasonable
    time", ISMM 2013.
    """
    if variances.between == 0:
        return most
    best = math.sqrt(restart_s / window_s * variances.within / variances.between)
    return min(most, max(1, round(best)))


BLOCKS = 4
"""Rounds of the pilot."""
TIMES_PILOT = 10
"""The longest measure phase, as a multiple of the pilot's, if the study sets none."""


@dataclass(frozen=True)
class PilotRun:
    """A good run of the pilot. `windows`: throughput of each; `restart_s`: seconds beside the measure phase."""

    block: int
    arm: str
    windows: tuple[float, ...]
    restart_s: float


def is_piloted(spec: Repetition) -> bool:
    """Whether the protocol chooses the length of the measure phase."""
    return isinstance(spec, InterleaveSpec) and spec.measure == "auto"


def most_s(spec: Repetition, pilot_s: float) -> float:
    """Return the longest measure phase that may be chosen, in seconds."""
    longest = spec.measure_most_s if isinstance(spec, InterleaveSpec) else None
    return TIMES_PILOT * pilot_s if longest is None else longest


def choose(
    runs: Sequence[PilotRun], baselines: Mapping[str, str], *, pilot_s: float, window_s: float, most: float
) -> Choice:
    """Choose by `windows_per_round`, from the variances of all arms together: 4 rounds of one arm say little.

    `baselines`: arm → the arm that it is compared with.
    """
    choice = Choice(
        measure_s=pilot_s, windows=round(pilot_s / window_s), window_s=window_s, pilot_s=pilot_s, most_s=most
    )
    tables = [_table(runs, arm, baseline) for arm, baseline in baselines.items()]
    usable = [table for table in tables if len(table) >= 2 and len(table[0]) >= 2]
    if not usable:
        why_not = "no arm had two rounds with windows of both itself and its baseline"
        return replace(choice, why_not=why_not)
    variances, restart_s = _pooled(usable), fmean(run.restart_s for run in runs)
    windows = max(LEAST_WINDOWS, windows_per_round(variances, restart_s, window_s, math.floor(most / window_s)))
    return replace(
        choice,
        windows=windows,
        measure_s=windows * window_s,
        within=variances.within,
        between=variances.between,
        restart_s=restart_s,
    )


def _pooled(tables: Sequence[Sequence[Sequence[float]]]) -> Components:
    """Mean over arms, weighted by their degrees of freedom between rounds."""
    parts = [(components(table), len(table) - 1) for table in tables]
    free = sum(weight for _, weight in parts)
    return Components(
        within=sum(part.within * weight for part, weight in parts) / free,
        between=sum(part.between * weight for part, weight in parts) / free,
    )


def _table(runs: Sequence[PilotRun], arm: str, baseline: str) -> list[list[float]]:
    """Return one row for each round: its log ratio, plus the windows' relative deviations on both sides.

    First order in the deviations, so that a window without any operation gives a large value and not none.
    """
    by_place = {(run.block, run.arm): run.windows for run in runs}
    pairs = [(by_place[place], by_place.get((place[0], baseline), ())) for place in by_place if place[1] == arm]
    length = min((len(side) for pair in pairs for side in pair), default=0)
    table = []
    for one, other in pairs:
        means = [fmean(side[:length]) if length else 0.0 for side in (one, other)]
        if min(means) <= 0:
            continue
        ratio = math.log(means[0] / means[1])
        table.append([ratio + one[n] / means[0] - other[n] / means[1] for n in range(length)])
    return table
