"""The median run stands for all repetitions, as in grambow-2018."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tare.analyze.estimate import Estimate

METHOD = "median-run"


def median_run(arm: Sequence[float], baseline: Sequence[float], confidence: float = 0.95) -> Estimate:
    """median(arm) / median(baseline) - 1, without an interval: the method has none.

    Grambow et al., "Dockerization impacts in database performance benchmarking", arXiv 1812.04362.
    """
    n = min(len(arm), len(baseline))
    point = median(arm) / median(baseline) - 1 if n else None
    return Estimate(point, None, None, n, confidence, METHOD, "the method has no interval")
