"""What rules look at, and what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.runs import Runs
from tare.analyze.statistics.pairing import pair
from tare.run.record import RunRecord
from tare.study.model import Study


@dataclass(frozen=True)
class Slope:
    """Of log throughput per unit, and whether its 99 % t interval leaves zero out."""

    per_unit: float
    real: bool
    range: float
    """Of the regressor, from the least to the most of a block, in the mean."""

    def over(self, units: float) -> float:
        """The relative change that so many units make."""
        return math.expm1(self.per_unit * units)


def slope_within(evidence: Evidence, regressor: Callable[[RunRecord], float | None]) -> Slope | None:
    """Log throughput on `regressor`, with an effect of every block and every arm taken out.

    Two-way least squares (Frisch & Waugh 1933) over the blocks in which every arm has a good run with both figures;
    `None` for fewer than 4, or where the regressor does not move.
    """
    rows = []
    for block in evidence.runs.blocks:
        pairs = [_pair(evidence.runs.good.get((block, arm)), regressor) for arm in evidence.arms]
        known = [each for each in pairs if each is not None]
        if len(known) == len(pairs):
            rows.append(known)
    free = (len(rows) - 1) * (len(evidence.arms) - 1) - 1
    if len(rows) < 4 or free < 3:
        return None
    raw = np.asarray(rows, dtype=float)
    x, y = _two_way(raw[:, :, 0]), _two_way(raw[:, :, 1])
    if float((x * x).sum()) < 1e-9:
        return None
    slope = float((x * y).sum() / (x * x).sum())
    error = math.sqrt(float(((y - slope * x) ** 2).sum()) / free / float((x * x).sum()))
    return Slope(
        slope, abs(slope) > float(stdtrit(free, 0.995)) * error, float(np.ptp(raw[:, :, 0], axis=1).mean())
    )


def _pair(run: RunRecord | None, regressor: Callable[[RunRecord], float | None]) -> tuple[float, float] | None:
    """The regressor's value and log throughput; `None` where one of them is not known."""
    if run is None:
        return None
    at, value = regressor(run), METRICS[PRIMARY].of(run)
    return None if at is None or value is None or value <= 0 else (at, math.log(value))


def _two_way(table: NDArray[np.float64]) -> NDArray[np.float64]:
    centred: NDArray[np.float64] = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return centred


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
        return self.runs.good_of(arm)

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """All arms with a good run, the baseline among them."""
        having = {arm for _, arm in self.runs.good}
        return tuple(arm.name for arm in self.study.arms if arm.name in having)

    @cached_property
    def attempted(self) -> tuple[str, ...]:
        """All arms of which a run was attempted, those without a good one among them."""
        tried = {arm for _, arm in self.runs.attempted}
        return tuple(arm.name for arm in self.study.arms if arm.name in tried)

    @cached_property
    def log_ratios(self) -> Mapping[str, Mapping[int, float]]:
        """Arm → block → log ratio of the primary metric to the baseline."""
        others = {arm: baseline for arm in self.arms if (baseline := self.study.baseline_of(arm)) != arm}
        pairs = {arm: pair(self.runs, arm, baseline, METRICS[PRIMARY]) for arm, baseline in others.items()}
        return {arm: {block: math.log(ratio) for block, ratio in pairing.ratios} for arm, pairing in pairs.items()}


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
