"""Percentiles from histograms, merged if a run has several, and the resolution of a histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

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


Histogram = Sequence[tuple[float, int]]
"""(value that represents a bucket, count), ascending."""

_ROUNDING = 1e-3
"""Generators print bucket values and extremes with few digits."""


def merged(histograms: Sequence[Histogram]) -> Histogram:
    """Merge histograms of several clients, windows or kinds of operation: counts add up, percentiles do not.

    Buckets of different layouts stay side by side, so the result has the resolution of the widest buckets.
    """
    counts: dict[float, int] = {}
    for histogram in histograms:
        for value, count in histogram:
            counts[value] = counts.get(value, 0) + count
    return tuple(sorted(counts.items()))


def percentile(histogram: Histogram, percent: float) -> float | None:
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


def percentile_of(part: Mapping[str, Any], percent: float) -> float | None:
    """Percentile of a measurement, or of one kind of operation in it, from its stored histograms.

    `None` without histograms, and if the percentile lies in a last bucket that also holds all slower events, up to
    `max_ms`.
    """
    return percentiles_of(part, histograms_of(part), (percent,))[percent]


def percentiles_of(
    part: Mapping[str, Any], histograms: Sequence[Histogram], percents: Sequence[float]
) -> Mapping[float, float | None]:
    """Several percentiles, as `percentile_of`, for a part with these histograms, which are merged once."""
    histogram = merged(histograms)
    return {percent: _known_percentile(part, histogram, percent) for percent in percents}


def _known_percentile(part: Mapping[str, Any], histogram: Histogram, percent: float) -> float | None:
    value = percentile(histogram, percent)
    latency = part.get("latency") or {}
    slowest, width = latency.get("max_ms"), latency.get("resolution")
    if value is None or value < histogram[-1][0] or slowest is None or width is None:
        return value
    return None if slowest > value * (1 + width) * (1 + _ROUNDING) + _ROUNDING else value


def histograms_of(part: Mapping[str, Any]) -> list[Histogram]:
    """Histograms that together count every event once: the part's own, else those of all its windows.

    Empty if a window lacks a histogram, as the others are incomplete. Kinds of operation are never merged, as one
    operation may count in two kinds.
    """
    several = [part] if part.get("histogram") else list(part.get("windows") or ())
    histograms = [[(float(value), int(count)) for value, count in each.get("histogram") or ()] for each in several]
    return list(histograms) if all(histograms) else []
