"""Figures of logs with a line for each operation: their percentiles are exact."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tare.errors import RunFailed
from tare.imports.parsers.figures import Times
from tare.record.measurement import Histogram, Window

_MOST_SECONDS = 1_000_000


RESOLUTION = 0.01
"""Relative width of the buckets of `histogram_of`, for the narrowest digits: 1.00 and 1.01."""


def histogram_of(latencies_s: Iterable[float]) -> Histogram:
    """Latencies in ms, rounded to three digits, with their counts."""
    counts = Counter(float(f"{1e3 * latency:.2e}") for latency in latencies_s)
    return tuple(sorted(counts.items()))


def exact_times(latencies_s: Sequence[float], *, blind: bool | None = None) -> Times:
    """Latencies in ms of at least one operation, of which there is also a histogram."""
    ordered = sorted(latencies_s)
    return Times(
        mean=1e3 * math.fsum(ordered) / len(ordered),
        least=1e3 * ordered[0],
        most=1e3 * ordered[-1],
        p50=_percentile_ms(ordered, 0.50),
        p95=_percentile_ms(ordered, 0.95),
        p99=_percentile_ms(ordered, 0.99),
        resolution=RESOLUTION,
        blind=blind,
    )


def _percentile_ms(ordered: Sequence[float], share: float) -> float:
    return 1e3 * ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def whole_seconds(
    ends_and_latencies: Iterable[tuple[float, float]], start: float, duration: float
) -> Iterator[Window]:
    """Yield each whole second since `start`. Raises `RunFailed` if the log spans weeks."""
    if duration > _MOST_SECONDS:
        raise RunFailed(f"its transactions took {duration:g} s: are the logs of several runs joined?")
    by_second: dict[int, list[float]] = defaultdict(list)
    for end_s, latency_s in ends_and_latencies:
        by_second[int(end_s - start)].append(latency_s)
    for second in range(int(duration)):
        times = sorted(by_second.get(second, ()))
        p95 = _percentile_ms(times, 0.95) if times else None
        yield Window(second + 1.0, float(len(times)), p95)
