"""What throughput follows within the blocks: least squares on something that differs from run to run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.validity.evidence import Evidence
from tare.run.record import RunRecord


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
