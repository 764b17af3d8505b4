"""Merge kinds of operations: one histogram and one latency of all kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tare.workloads import Latency, Operation


def percentile(histogram: Sequence[tuple[float, int]], percent: float) -> float | None:
    """Value of the bucket that contains the percentile; `None` for an empty histogram.

    That is the first bucket up to which floor(n · p / 100 + 0.5) values lie, as `getValueAtPercentile` of
    HdrHistogram 2.1.4.
    """
    total = sum(count for _, count in histogram)
    wanted, seen = max(1, math.floor(total * percent / 100 + 0.5)), 0
    for value, count in histogram:
        seen += count
        if seen >= wanted:
            return value
    return None


def merge_histograms(parts: Iterable[Sequence[tuple[float, int]]]) -> tuple[tuple[float, int], ...]:
    """Merge histograms into one; the result is empty if any of them is empty."""
    counts: dict[float, int] = {}
    for part in parts:
        if not part:
            return ()
        for value, count in part:
            counts[value] = counts.get(value, 0) + count
    return tuple(sorted(counts.items()))


def merge_latencies(
    kinds: Iterable[Operation], histogram: Sequence[tuple[float, int]], resolution: float
) -> Latency:
    """Latency of all kinds: mean weighted by count, extremes, and percentiles of their merged `histogram`."""
    parts = [(each.operations, each.latency) for each in kinds]
    if len(parts) == 1:
        return parts[0][1]
    means = [(count, one.mean_ms) for count, one in parts if count]
    total = sum(count for count, _ in means)
    known = [count * mean for count, mean in means if mean is not None]
    first = parts[0][1]
    return Latency(
        mean_ms=sum(known) / total if total > 0 and len(known) == len(means) else None,
        min_ms=min((one.min_ms for _, one in parts if one.min_ms is not None), default=None),
        max_ms=max((one.max_ms for _, one in parts if one.max_ms is not None), default=None),
        p50_ms=percentile(histogram, 50),
        p95_ms=percentile(histogram, 95),
        p99_ms=percentile(histogram, 99),
        resolution=resolution if histogram else None,
        blind_to_stalls=first.blind_to_stalls,
        timed_from=first.timed_from,
    )
