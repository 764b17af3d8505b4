"""Input of validity rules (evidence) and their output (alarms)."""

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
from tare.record.run_record import RunRecord
from tare.study.model import Study


@dataclass(frozen=True)
class Slope:
    """Slope of log throughput per unit. `real`: its 99 % t interval excludes zero."""

    per_unit: float
    real: bool
    range: float
    """Mean range of the regressor within a block."""

    def over(self, units: float) -> float:
        """Relative change over a number of units."""
        return math.expm1(self.per_unit * units)


def slope_within(evidence: Evidence, regressor: Column) -> Slope | None:
    """Regress log throughput on `regressor`, with effects of every block and every arm removed.

    Two-way least squares (Frisch & Waugh 1933) over the blocks in which every arm has a good run with both figures;
    `None` for fewer than 4 blocks, or if the regressor is constant.
    """
    rows = evidence.all_rows
    rows = rows[known(regressor[rows]) & known(evidence.log_throughput[rows])]
    _, block, count = np.unique(evidence.runs.row_blocks[rows], return_inverse=True, return_counts=True)
    rows = rows[count[block] == len(evidence.arms)]
    blocks = len(rows) // max(1, len(evidence.arms))
    free = (blocks - 1) * (len(evidence.arms) - 1) - 1
    if blocks < 4 or free < 3:
        return None
    # Rows are arm by arm, with blocks in order; transposed: one row for each block.
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
    """A broken rule, with the runs concerned and advice. `arm`: `None` if it concerns the whole study."""

    rule: str
    arm: str | None
    what: str
    runs: tuple[str, ...]
    do: str


@dataclass(frozen=True)
class Evidence:
    """A study's runs. Rules ignore what a run did not record; they never count it as good or bad."""

    study: Study
    runs: Runs

    def good(self, arm: str) -> tuple[RunRecord, ...]:
        """Good runs of an arm, in the order of the blocks."""
        return self.runs.good_of(arm)

    @property
    def columns(self) -> Columns:
        """Columns of all good runs; `rows` gives the rows of an arm."""
        return self.runs.columns

    def between(self, arm: str) -> list[RunRecord]:
        """Good runs of an arm that were made between two hosts."""
        rows = self.rows(arm)
        return [self.columns.records[row] for row in rows[self.columns.where(_is_between)[rows]]]

    def rows(self, arm: str) -> Rows:
        """Rows of an arm's good runs in the columns."""
        return self.runs.rows(arm)

    def pairs(self, arm: str, baseline: str) -> tuple[Rows, Rows]:
        """Rows of an arm in blocks that the baseline has too, and the baseline's rows."""
        rows = self.rows(arm)
        base = self.runs.rows_in(baseline, self.runs.row_blocks[rows])
        return rows[base >= 0], base[base >= 0]

    def ids(self, rows: Rows | Sequence[int]) -> tuple[str, ...]:
        """Ids of the runs in these rows."""
        return tuple([self._names[row] for row in rows])

    @cached_property
    def _names(self) -> Sequence[str]:
        return ids(self.columns.records)

    @cached_property
    def all_rows(self) -> Rows:
        """Rows of all good runs, arm by arm."""
        return np.concatenate([self.rows(arm) for arm in self.arms] or [np.array([], dtype=np.intp)])

    @cached_property
    def log_throughput(self) -> Column:
        """Log throughput of all good runs; NaN without throughput."""
        values = self.runs.column(METRICS[PRIMARY]).tolist()
        return np.array([math.log(value) if value > 0 else math.nan for value in values])

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """Arms with a good run, including the baseline."""
        having = {arm for _, arm in self.runs.good}
        return tuple(arm.name for arm in self.study.arms if arm.name in having)

    @cached_property
    def attempted(self) -> tuple[str, ...]:
        """Arms with an attempted run, including arms without a good one."""
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
    """Mean of differences. `real`: its t interval (99 % by default) excludes zero."""

    mean: float
    real: bool


def shift(values: Sequence[float], confidence: float = 0.99) -> Shift | None:
    """Student's t on differences; `None` for fewer than 4, where t has hardly any power."""
    if len(values) < 4:
        return None
    mean, spread = fmean(values), stdev(values)
    reach = float(stdtrit(len(values) - 1, 0.5 + confidence / 2)) * spread / math.sqrt(len(values))
    return Shift(mean, abs(mean) > reach)


def ids(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Names of runs."""
    return tuple(record.run_id for record in records)


def share(part: float) -> str:
    """Format a fraction in percent."""
    return f"{100 * part:.1f} %"
