"""Percentiles from histograms, merged where a run left several, and what a histogram can tell apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

_PRINTED = 1e-3
"""Generators print bucket bounds with few decimals, so neighbours may seem this much more than a bucket apart."""


def below_resolution(point: float | None, bucket: float | None) -> bool:
    """Whether a relative difference is no larger than one histogram bucket of relative width `bucket`.

    Two values in neighbouring buckets may differ by anything between nothing and two buckets, so a difference of
    exactly one is not claimed either.
    """
    if point is None or bucket is None:
        return False
    return abs(math.log1p(point)) <= math.log1p(bucket) * (1 + _PRINTED) + _PRINTED * bucket


Histogram = Sequence[tuple[float, int]]
"""(the value that stands for a bucket, count), rising."""

_ROUNDING = 1e-3
"""Generators print bucket values and extremes with few digits."""


def merged(histograms: Sequence[Histogram]) -> Histogram:
    """The histogram of all events together: counts add up, percentiles do not.

    Of several clients, windows or kinds of operation. Buckets of different layouts are kept side by side, so the
    result is known to the widest of them.
    """
    counts: dict[float, int] = {}
    for histogram in histograms:
        for value, count in histogram:
            counts[value] = counts.get(value, 0) + count
    return tuple(sorted(counts.items()))


def percentile(histogram: Histogram, percent: float) -> float | None:
    """The value of the first bucket up to which floor(n · percent / 100 + 1/2) of the n events lie, at least one.

    So do sysbench (`get_pct_cumulative`, sb_histogram.c) and HdrHistogram (`getValueAtPercentile`); `None` of
    nothing.
    """
    wanted = max(1, math.floor(sum(count for _, count in histogram) * percent / 100 + 0.5))
    seen = 0
    for value, count in histogram:
        seen += count
        if seen >= wanted:
            return value
    return None


def percentile_of(part: Mapping[str, Any], percent: float) -> float | None:
    """The percentile of a measurement, or of one kind of operation in it, by its stored histograms.

    `None` where none was stored, and where it lies in a last bucket that also holds what was slower, up to
    `max_ms`: that is no value.
    """
    return percentiles_of(part, histograms_of(part), (percent,))[percent]


def percentiles_of(
    part: Mapping[str, Any], histograms: Sequence[Histogram], percents: Sequence[float]
) -> Mapping[float, float | None]:
    """Several of them, as `percentile_of`, of a part with these histograms, which are put together once."""
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
    """The histograms in which every event is counted once: the part's own, else those of all its windows.

    Empty where a window lacks its own, for the others are not the whole. Kinds of operation are never put
    together: one operation may be counted in two of them.
    """
    several = [part] if part.get("histogram") else list(part.get("windows") or ())
    histograms = [[(float(value), int(count)) for value, count in each.get("histogram") or ()] for each in several]
    return list(histograms) if all(histograms) else []
