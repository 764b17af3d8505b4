"""Relative change of averages."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tare.analyze.estimate import Estimate

METHOD = "relative-change-of-averages"


def relative_change(arm: Sequence[float], baseline: Sequence[float], confidence: float = 0.95) -> Estimate:
    """mean(arm) / mean(baseline) - 1, without an interval: the method has none."""
    n = min(len(arm), len(baseline))
    if n and fmean(baseline) <= 0:
        return Estimate(None, None, None, n, confidence, METHOD, "nothing is relative to a baseline of zero")
    point = fmean(arm) / fmean(baseline) - 1 if n else None
    return Estimate(point, None, None, n, confidence, METHOD, "the method has no interval")
