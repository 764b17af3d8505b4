"""Parser for the log of histograms of cassandra-stress (`-log hdrfile=`): one histogram for each kind of operation.

The log has a line for each interval and kind, tagged `READ-st` (service time, from the actual send), `READ-rt`
(response time, from the intended send) and `READ-wt` (the difference); nanoseconds, three significant digits.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from numpy.typing import NDArray

from tare.errors import RunFailed
from tare.workloads import Latency
from tare.workloads.cassandra_stress.output import TOTAL

FILE = "latency.hdr"
"""Name of the log in the client's run directory."""
RESOLUTION = 1e-3
"""Resolution of three significant digits: a bucket is no wider than 1 in 1024 of its value."""
TimedFrom = Literal["intended-send", "actual-send"]
_TAGS: Mapping[TimedFrom, str] = {"intended-send": "-rt", "actual-send": "-st"}
_LONGEST_NS, _DIGITS = 3600 * 10**9, 3
_NS_PER_MS, _MS_PER_S = 1e6, 1e3
Counts = NDArray[np.int64]
_BROKEN = (ValueError, zlib.error, HdrCookieException, HdrLengthException, IndexError)


@dataclass(frozen=True)
class Histograms:
    """Histograms over all intervals. `of`: kind of operation as cassandra-stress writes it (`READ`), or `total`.

    `ended_at`: end of the last interval in seconds since the epoch; `None` without intervals.
    """

    timed_from: TimedFrom
    of: Mapping[str, HdrHistogram]
    ended_at: float | None = None

    def count(self, kind: str = TOTAL) -> int:
        """Number of operations of a kind; 0 if there are none."""
        return int(self.of[kind].get_total_count()) if kind in self.of else 0

    def buckets(self, kind: str = TOTAL) -> tuple[tuple[float, int], ...]:
        """Buckets of a kind as (largest value in ms, count), ascending."""
        if kind not in self.of:
            return ()
        return tuple((bucket.highest_ns / _NS_PER_MS, bucket.count) for bucket in _recorded(self.of[kind]))

    def latency(self, kind: str = TOTAL) -> Latency | None:
        """Latency of one kind or of all; `None` if the log has none of it."""
        if not self.count(kind):
            return None
        one = self.of[kind]
        percentiles = one.get_percentile_to_value_dict([50, 95, 99])
        p50, p95, p99 = (percentiles[percent] / _NS_PER_MS for percent in (50, 95, 99))
        return Latency(
            mean_ms=_mean_ns(one) / _NS_PER_MS,
            min_ms=one.get_min_value() / _NS_PER_MS,
            max_ms=one.get_max_value() / _NS_PER_MS,
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            resolution=RESOLUTION,
            blind_to_stalls=self.timed_from != "intended-send",
            timed_from=self.timed_from,
        )


def read_histograms(path: Path, timed_from: TimedFrom) -> Histograms | None:
    """Parse histograms timed from `timed_from`; `None` without a log. Raises `RunFailed` for a damaged log."""
    counts: dict[str, Counts] = {}
    ends: list[float] = []
    try:
        with closing(HistogramLogReader(str(path), HdrHistogram(1, _LONGEST_NS, _DIGITS))) as log:
            while (interval := log.get_next_interval_histogram()) is not None:
                ends.append(interval.get_end_time_stamp() / _MS_PER_S)
                kind, ending = str(interval.get_tag())[:-3], str(interval.get_tag())[-3:]
                if ending == _TAGS[timed_from]:
                    counts[kind] = _sum(counts.get(kind), interval)
    except FileNotFoundError:
        return None
    except _BROKEN as error:
        raise RunFailed(f"cassandra-stress's log of histograms is damaged: {error}") from error
    if not counts:
        return Histograms(timed_from, {})
    total = HdrHistogram(1, _LONGEST_NS, _DIGITS)
    histograms = {kind: _histogram(each) for kind, each in counts.items()}
    for each in histograms.values():
        total.add(each)
    return Histograms(timed_from, {**histograms, TOTAL: total}, max(ends))


@dataclass(frozen=True)
class _Bucket:
    lowest_ns: int
    highest_ns: int
    count: int


def _recorded(histogram: HdrHistogram) -> Iterator[_Bucket]:
    """Yield non-empty buckets, ascending; the library's own iterator visits tens of thousands of empty ones."""
    for index in np.flatnonzero(np.ctypeslib.as_array(histogram.counts)):
        lowest = histogram.get_value_from_index(int(index))
        yield _Bucket(lowest, histogram.get_highest_equivalent_value(lowest), int(histogram.counts[index]))


def _mean_ns(histogram: HdrHistogram) -> float:
    """Mean in nanoseconds, with each value at the middle of its bucket, as in HdrHistogram."""
    buckets = tuple(_recorded(histogram))
    total = sum(each.count * (each.lowest_ns + (each.highest_ns - each.lowest_ns + 1) // 2) for each in buckets)
    return total / sum(each.count for each in buckets)


def _sum(known: Counts | None, interval: HdrHistogram) -> Counts:
    """Add counts by bucket; histograms with the same digits and unit have the same first buckets."""
    if (interval.unit_magnitude, interval.significant_figures) != (0, _DIGITS):
        raise ValueError(f"nanoseconds with {_DIGITS} digits were expected")
    more = np.ctypeslib.as_array(interval.counts).astype(np.int64)
    if known is None:
        return more
    longer, shorter = (known, more) if known.size >= more.size else (more, known)
    longer[: shorter.size] += shorter
    return longer


def _histogram(counts: Counts) -> HdrHistogram:
    made = HdrHistogram(1, _LONGEST_NS, _DIGITS)
    for index in np.flatnonzero(counts):
        made.record_value(made.get_value_from_index(int(index)), int(counts[index]))
    return made
