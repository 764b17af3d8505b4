"""What protocols cost and how often they are wrong, from pools of runs. Measured and computed figures stay apart.

A pool is a number of studies with one order of runs. It gives, for each way to analyze them:

- verdicts: one for every stretch of `SEGMENT` consecutive rounds of a study. Stretches overlap, so the share is a
  mean of dependent verdicts; its interval is that of the disjoint stretches.
- seconds to a width, *measured*: the machine time until the interval of the stored runs, in their order, was narrow
  enough. `None` where the pool has too few runs.
- seconds to a width, *computed*: from the pool's variances, by the formulas below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy.special import stdtrit

from tare.analyze.estimate import Estimate
from tare.analyze.published import pooled_windows, welch
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.calibrate.pooled import Share, share
from tare.protocols.pilot import Components, components
from tare.protocols.stopping import Rule, blocks_needed

SEGMENT = 4
"""Rounds of a verdict: as many for every way of judging, at a nominal 5 %."""
MOST_RUNS = 10_000


@dataclass(frozen=True)
class Run:
    """One run. `rate`: what arms are compared by. `windows`: rates of its windows. `seconds`: of machine time."""

    rate: float
    windows: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class Rounds:
    """One arm of one study against its baseline, in the order of its rounds. `truth`: log ratio that is so."""

    pairs: tuple[tuple[Run, Run], ...]
    truth: float

    @property
    def log_ratios(self) -> list[float]:
        """ln(arm / baseline) of each round, less the truth."""
        return [math.log(arm.rate / baseline.rate) - self.truth for arm, baseline in self.pairs]


Judge = Callable[[Sequence[tuple[Run, Run]]], Estimate]


def by_pairs(pairs: Sequence[tuple[Run, Run]]) -> Estimate:
    """`interleave` and `duet`: t over rounds."""
    return paired_log_ratio_t([arm.rate / baseline.rate for arm, baseline in pairs])


def sequential(pairs: Sequence[tuple[Run, Run]]) -> Estimate:
    """The same with the smaller alpha that pays for repeated looks."""
    return paired_log_ratio_t([arm.rate / baseline.rate for arm, baseline in pairs], 1 - Rule().alpha)


def by_welch(pairs: Sequence[tuple[Run, Run]]) -> Estimate:
    """`fixed`: Welch over runs."""
    return welch([arm.rate for arm, _ in pairs], [baseline.rate for _, baseline in pairs])


def by_windows(pairs: Sequence[tuple[Run, Run]]) -> Estimate:
    """`buckets`: windows of all runs in one pot, z = 1.96."""
    arm, baseline = ([rate for pair in pairs for rate in pair[side].windows] for side in (0, 1))
    return pooled_windows(arm, baseline)


@dataclass(frozen=True)
class Verdicts:
    """Stretches whose interval excludes the truth, of all overlapping and of disjoint ones."""

    overlapping: Share
    disjoint: Share


def wrong(pool: Sequence[Rounds], judge: Judge) -> Verdicts:
    """How often the interval of `SEGMENT` consecutive rounds excludes the truth; 5 % is nominal."""
    every = [_wrong(rounds, begin, judge) for rounds in pool for begin in range(len(rounds.pairs) - SEGMENT + 1)]
    apart = [
        _wrong(rounds, begin, judge)
        for rounds in pool
        for begin in range(0, len(rounds.pairs) - SEGMENT + 1, SEGMENT)
    ]
    return Verdicts(share(sum(every), len(every)), share(sum(apart), len(apart)))


def _wrong(rounds: Rounds, begin: int, judge: Judge) -> bool:
    estimate = judge(rounds.pairs[begin : begin + SEGMENT])
    truth = math.expm1(rounds.truth)
    return estimate.low is not None and estimate.high is not None and not estimate.low <= truth <= estimate.high


def pooled_spread(pool: Sequence[Rounds]) -> float | None:
    """Standard deviation of log ratios from round to round: √(Σ (n - 1) s² / Σ (n - 1)) over studies and arms."""
    logs = [np.asarray(rounds.log_ratios) for rounds in pool if len(rounds.pairs) > 1]
    freedom = sum(len(one) - 1 for one in logs)
    return math.sqrt(sum(float(((one - one.mean()) ** 2).sum()) for one in logs) / freedom) if freedom else None


def pair_seconds(pool: Sequence[Rounds]) -> float:
    """Machine time of one run of the arm and one of the baseline."""
    return fmean(arm.seconds + baseline.seconds for rounds in pool for arm, baseline in rounds.pairs)


def measured_seconds(
    pool: Sequence[Rounds], judge: Judge, target: float, looks: Callable[[int], bool]
) -> float | None:
    """Machine time until the interval was narrow enough, in the mean over arms; `None` where one never was.

    Each arm's rounds of all studies, one study after the other. `looks`: after how many the width is checked.
    """
    seconds = [next(_narrow(rounds, judge, target, looks), None) for rounds in pool]
    known = [each for each in seconds if each is not None]
    return fmean(known) if known and len(known) == len(seconds) else None


def _narrow(rounds: Rounds, judge: Judge, target: float, looks: Callable[[int], bool]) -> Iterator[float]:
    for n in range(2, len(rounds.pairs) + 1):
        estimate = judge(rounds.pairs[:n])
        known = looks(n) and estimate.low is not None and estimate.high is not None
        if known and ((estimate.high or 0.0) - (estimate.low or 0.0)) / 2 <= target:
            yield sum(arm.seconds + baseline.seconds for arm, baseline in rounds.pairs[:n])


def joined(pool: Sequence[Rounds]) -> Rounds:
    """The rounds of one arm in all studies, as one sequence."""
    return Rounds(tuple(pair for rounds in pool for pair in rounds.pairs), pool[0].truth)


def rounds_for(target: float, spread: float) -> int:
    """Rounds of the default protocol to ± target, its looks included; see `blocks_needed`."""
    return blocks_needed(Rule(target=target, blocks=MOST_RUNS), 0.0, spread) or MOST_RUNS


def variances(pool: Sequence[Rounds]) -> Components:
    """Of log rates: of windows within a run, and of runs of one arm between each other, in the mean over arms.

    Searle, Casella & McCulloch, Variance Components (1992), chapter 3; see `tare.protocols.pilot.components`.
    """
    parts = []
    for rounds in pool:
        for side in (0, 1):
            logs = [[math.log(rate) for rate in pair[side].windows] for pair in rounds.pairs]
            shortest = min(len(each) for each in logs)
            parts.append(components([each[:shortest] for each in logs]))
    return Components(within=fmean(one.within for one in parts), between=fmean(one.between for one in parts))


def runs_for(target: float, of: Components, windows: float) -> int:
    """Runs of each arm to a Welch interval of ± target: the least n with t(2n - 2, 0.975) · √(2 v / n) ≤ target.

    v = between + within / windows is the variance of the log rate of a run of so many windows (Cochran, Sampling
    Techniques, 1977, section 10.3). Windows are taken as independent, which flatters long runs.
    """
    variance = of.between + of.within / windows
    for n in range(2, MOST_RUNS):
        if float(stdtrit(2 * n - 2, 0.975)) * math.sqrt(2 * variance / n) <= target:
            return n
    return MOST_RUNS


def width_of(runs: int, of: Components, windows: float) -> float | None:
    """Half the Welch interval of so many runs an arm; `None` for one run, which has no spread."""
    if runs < 2:
        return None
    variance = of.between + of.within / windows
    return float(stdtrit(2 * runs - 2, 0.975)) * math.sqrt(2 * variance / runs)


def windows_claim(target: float, of: Components, windows: float) -> int:
    """Runs after which windows in one pot claim ± target: the least n with 1.96 · √(2 (between + within) / (n m)).

    m windows a run. A claim, and too soon: windows of one run share its start.
    """
    return max(1, math.ceil(2 * (1.96 / target) ** 2 * (of.between + of.within) / windows))
