"""Percentiles from histograms, and the resolution of a histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tare.record.measurement import Measurement, Operation

_PRINTED = 1e-3
"""Relative rounding: with few decimals, neighbouring buckets may seem that much more than one bucket apart."""


def below_resolution(point: float | None, bucket: float | None) -> bool:
    """Whether a relative difference is no larger than one histogram bucket of relative width `bucket`.

    Two values in neighbouring buckets may differ by anything from nothing to two buckets, so a difference of
    exactly one bucket is not claimed either.
    """
    if point is None or bucket is None:
        return False
    return abs(math.log1p(point)) <= math.log1p(bucket) * (1 + _PRINTED) + _PRINTED * bucket


_ROUNDING = 1e-3
"""Generators print bucket values and extremes with few digits."""


def percentile(histogram: Sequence[tuple[float, int]], percent: float) -> float | None:
    """Value of the first bucket up to which floor(n · percent / 100 + 1/2) of the n events lie, at least one.

    sysbench (`get_pct_cumulative`, sb_histogram.c) and HdrHistogram (`getValueAtPercentile`) use the same formula.
    `None` for an empty histogram.
    """
    wanted = max(1, math.floor(sum(count for _, count in histogram) * percent / 100 + 0.5))
    seen = 0
    for value, count in histogram:
        seen += count
        if seen >= wanted:
            return value
    return None


def percentile_of(part: Measurement | Operation, percent: float) -> float | None:
    """Percentile of a measurement, or of one kind of operation in it, from its histogram.

    `None` without a histogram, and if the percentile lies in a last bucket that also holds all slower events, up to
    `max_ms`.
    """
    value = percentile(part.histogram, percent)
    slowest, width = part.latency.max_ms, part.latency.resolution
    if value is None or value < part.histogram[-1][0] or slowest is None or width is None:
        return value
    return None if slowest > value * (1 + width) * (1 + _ROUNDING) + _ROUNDING else value
