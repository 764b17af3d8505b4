"""Statistics of series of blocks and windows: lag-1 correlation, and the end of the warm-up (MSER-5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEWEST = 8


def lag1(series: Sequence[float]) -> float | None:
    """Correlation of a value with the one before: sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)².

    `None` for fewer than 8 values or a constant series. Box, Jenkins & Reinsel, Time Series Analysis, section 2.1.
    """
    values = np.asarray(series, dtype=float)
    if len(values) < FEWEST:
        return None
    centred = values - values.mean()
    total = float(centred @ centred)
    if total <= 1e-24 * max(1.0, float(values @ values)):
        return None
    return float(centred[:-1] @ centred[1:]) / total


def bound(n: int) -> float:
    """Bound that the lag-1 correlation of independent values exceeds once in twenty: 1.96 / √n. Bartlett (1946)."""
    return 1.96 / math.sqrt(n)


BATCH = 5
_FEWEST_LEFT = 5
"""Fewest batches after a candidate; with fewer, chance dominates the statistic."""


@dataclass(frozen=True)
class WarmUp:
    """End of the warm-up. `drop`: first observations to leave out. `settled`: the minimum is in the first half.

    Otherwise the series is too short or never settles, and `drop` means nothing.
    """

    drop: int
    settled: bool


def mser5(series: Sequence[float]) -> WarmUp | None:
    """Truncation point with the smallest marginal standard error; `None` for fewer than 10 batches of 5.

    Over the means Y of k batches of 5, the d that minimises
    MSER(d) = sum_{j > d} (Y_j - mean_{j > d} Y)² / (k - d)².
    White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69 (1997); White,
    Cobb & Spratt (2000) for batches of 5; Hoad, Robinson & Davies, "Automating warm-up length estimation", J. Oper.
    Res. Soc. 61 (2010): reject a minimum in the second half, leave out candidates with fewer than 5 batches behind.
    """
    k = len(series) // BATCH
    if k < 2 * _FEWEST_LEFT:
        return None
    means = np.asarray(series[: k * BATCH], dtype=float).reshape(k, BATCH).mean(axis=1)
    candidates = range(k - _FEWEST_LEFT + 1)
    errors = [float(means[d:].var()) / (k - d) for d in candidates]
    best = int(np.argmin(errors))
    return WarmUp(drop=best * BATCH, settled=best <= k // 2)
