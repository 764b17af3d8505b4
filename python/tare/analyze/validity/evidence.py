"""What rules look at, and what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev

from scipy.special import stdtrit

from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.runs import Runs
from tare.analyze.statistics.pairing import pair
from tare.run.record import RunRecord
from tare.study.model import Study


@dataclass(frozen=True)
class Alarm:
    """A rule that is broken: in which runs, and what to do. `arm`: `None` where it is the whole study's."""

    rule: str
    arm: str | None
    what: str
    runs: tuple[str, ...]
    do: str


@dataclass(frozen=True)
class Evidence:
    """A study's runs. What a run did not record is left out by the rules, never taken as good or bad."""

    study: Study
    runs: Runs

    def good(self, arm: str) -> tuple[RunRecord, ...]:
        """The runs of an arm that count, in the order of the blocks."""
        return tuple(self.runs.good[place] for place in sorted(self.runs.good) if place[1] == arm)

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms with a good run, the baseline among them."""
        having = {arm for _, arm in self.runs.good}
        return tuple(arm.name for arm in self.study.arms if arm.name in having)

    @property
    def attempted(self) -> tuple[str, ...]:
        """All arms of which a run was attempted, those without a good one among them."""
        tried = {arm for _, arm in self.runs.attempted}
        return tuple(arm.name for arm in self.study.arms if arm.name in tried)

    @cached_property
    def log_ratios(self) -> Mapping[str, Mapping[int, float]]:
        """Arm → block → log ratio of the primary metric to the baseline."""
        others = {arm: baseline for arm in self.arms if (baseline := self.study.baseline_of(arm)) != arm}
        pairs = {arm: pair(self.runs, arm, baseline, METRICS[PRIMARY]) for arm, baseline in others.items()}
        return {arm: {block: math.log(ratio) for block, ratio in found.ratios} for arm, found in pairs.items()}


Rule = Callable[[Evidence], Iterator[Alarm]]


@dataclass(frozen=True)
class Shift:
    """Mean of differences, and whether its 99 % t interval leaves zero out."""

    mean: float
    real: bool


def shift(values: Sequence[float], confidence: float = 0.99) -> Shift | None:
    """Student's t on differences; `None` for fewer than 4, over which t has no power to speak of."""
    if len(values) < 4:
        return None
    mean, spread = fmean(values), stdev(values)
    reach = float(stdtrit(len(values) - 1, 0.5 + confidence / 2)) * spread / math.sqrt(len(values))
    return Shift(mean, abs(mean) > reach)


def ids(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Names of runs."""
    return tuple(record.run_id for record in records)


def share(part: float) -> str:
    """A fraction as people read it."""
    return f"{100 * part:.1f} %"
