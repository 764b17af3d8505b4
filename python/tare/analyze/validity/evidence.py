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

from tare.analyze.columns import Column, Columns, Rows, known
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


def slope_within(evidence: Evidence, regressor: Column) -> Slope | None:
    """Log throughput on `regressor`, with an effect of every block and every arm taken out.

    Two-way least squares (Frisch & Waugh 1933) over the blocks in which every arm has a good run with both figures;
    `None` for fewer than 4, or where the regressor does not move.
    """
    rows = evidence.all_rows
    rows = rows[known(regressor[rows]) & known(evidence.log_throughput[rows])]
    _, block, count = np.unique(evidence.runs.row_blocks[rows], return_inverse=True, return_counts=True)
    rows = rows[count[block] == len(evidence.arms)]
    blocks = len(rows) // max(1, len(evidence.arms))
    free = (blocks - 1) * (len(evidence.arms) - 1) - 1
    if blocks < 4 or free < 3:
        return None
    # Arm by arm, and the blocks of each in order: turned, a row a block.
    at, value = (column[rows].reshape(-1, blocks).T for column in (regressor, evidence.log_throughput))
    x, y = _two_way(np.ascontiguousarray(at)), _two_way(np.ascontiguousarray(value))
    if float((x * x).sum()) < 1e-9:
        return None
    slope = float((x * y).sum() / (x * x).sum())
    error = math.sqrt(float(((y - slope * x) ** 2).sum()) / free / float((x * x).sum()))
    return Slope(slope, abs(slope) > float(stdtrit(free, 0.995)) * error, float(np.ptp(at, axis=1).mean()))


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

    @property
    def columns(self) -> Columns:
        """The figures of all runs that count; `rows` says which are an arm's."""
        return self.runs.columns

    def between(self, arm: str) -> list[RunRecord]:
        """Those of `good` that were made between two hosts."""
        rows = self.rows(arm)
        return [self.columns.records[row] for row in rows[self.columns.where(_is_between)[rows]]]

    def rows(self, arm: str) -> Rows:
        """The places of `good` in the columns."""
        return self.runs.rows(arm)

    def pairs(self, arm: str, baseline: str) -> tuple[Rows, Rows]:
        """The rows of an arm in blocks that the baseline has too, and the baseline's."""
        rows = self.rows(arm)
        base = self.runs.rows_in(baseline, self.runs.row_blocks[rows])
        return rows[base >= 0], base[base >= 0]

    def ids(self, rows: Rows | Sequence[int]) -> tuple[str, ...]:
        """Names of runs."""
        return tuple([self._names[row] for row in rows])

    @cached_property
    def _names(self) -> Sequence[str]:
        return ids(self.columns.records)

    @cached_property
    def all_rows(self) -> Rows:
        """Arm by arm."""
        return np.concatenate([self.rows(arm) for arm in self.arms] or [np.array([], dtype=np.intp)])

    @cached_property
    def log_throughput(self) -> Column:
        """Of all runs; not known where there was none."""
        values = self.runs.column(METRICS[PRIMARY]).tolist()
        return np.array([math.log(value) if value > 0 else math.nan for value in values])

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


def _is_between(run: RunRecord) -> bool:
    return run.between is not None


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
