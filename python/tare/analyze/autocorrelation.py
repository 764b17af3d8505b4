"""Lag-1 correlation: whether neighbouring rounds are alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

FEWEST = 8


def lag1(series: Sequence[float]) -> float | None:
    """How much a value is like the one before it: sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)².

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
    """What independent values exceed once in twenty, in size: 1.96 / √n. Bartlett (1946)."""
    return 1.96 / math.sqrt(n)
