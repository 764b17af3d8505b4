"""Parser for the output of sysbench 1.0.20, line by line; it judges nothing.

Formats: `db_report_intermediate`, `db_report_cumulative` (db_driver.c), `sb_report_cumulative` (sysbench.c) and
`sb_histogram_print` (sb_histogram.c) of that release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_N = r"(\d+(?:\.\d+)?)"

_WINDOW = re.compile(
    rf"\[ (\d+)s \] thds: (\d+) tps: {_N} qps: {_N} \(r/w/o: {_N}/{_N}/{_N}\) "
    rf"lat \(ms,(\d+)%\): {_N} err/s: {_N} reconn/s: {_N}"
)
_QUEUE = re.compile(r"\[ (\d+)s \] queue length: (\d+), concurrency: (\d+)")
_BUCKET = re.compile(rf"\s*{_N} \|\**\s+(\d+)")
_COMPLAINT = re.compile(r"(?:FATAL|ALERT): .*")

Figures = Mapping[str, tuple[float, ...]]
"""Name of a line → its figures, in order."""

STATISTICS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "total_time_s": rf"    total time: +{_N}s",
        "events": r"    total number of events: +(\d+)",
        "latency_min_ms": rf" +min: +{_N}",
        "latency_avg_ms": rf" +avg: +{_N}",
        "latency_max_ms": rf" +max: +{_N}",
        "latency_p95_ms": rf" +95th percentile: +{_N}",
        "latency_sum_ms": rf" +sum: +{_N}",
        "thread_events": rf"    events \(avg/stddev\): +{_N}/{_N}",
        "thread_time_s": rf"    execution time \(avg/stddev\): +{_N}/{_N}",
    }.items()
}
"""Lines at the end of every test of sysbench (`sb_report_cumulative`)."""

_OLTP = {
    name: re.compile(pattern)
    for name, pattern in {
        "read": r"        read: +(\d+)",
        "write": r"        write: +(\d+)",
        "other": r"        other: +(\d+)",
        "total": r"        total: +(\d+)",
        "transactions": rf"    transactions: +(\d+) +\({_N} per sec\.\)",
        "queries": rf"    queries: +(\d+) +\({_N} per sec\.\)",
        "ignored_errors": rf"    ignored errors: +(\d+) +\({_N} per sec\.\)",
        "reconnects": rf"    reconnects: +(\d+) +\({_N} per sec\.\)",
    }.items()
}
_FIGURES: Mapping[str, re.Pattern[str]] = {**_OLTP, **STATISTICS}
_OTHERS = {f"latency_p{n}_ms": re.compile(rf" +{n}th percentile: +{_N}") for n in (50, 99)}
"""Lines in place of the 95th percentile if another `--percentile` was set."""


@dataclass(frozen=True)
class Interval:
    """One line of `--report-interval`; rates cover the time since the line before."""

    end_s: int
    threads: int
    tps: float
    qps: float
    reads_per_s: float
    writes_per_s: float
    others_per_s: float
    latency_p95_ms: float | None
    """`None` if another percentile was set."""
    errors_per_s: float
    reconnects_per_s: float


@dataclass(frozen=True)
class Queue:
    """Second line of an interval with `--rate`: number of waiting transactions, and of those in progress."""

    end_s: int
    length: int
    concurrency: int


@dataclass(frozen=True)
class Bucket:
    """A line of the histogram: latency that represents the bucket (its logarithmic middle), and count."""

    value_ms: float
    count: int


@dataclass(frozen=True)
class Printed:
    """Parsed output. `figures`: name → figures of that line, in order; absent if not printed."""

    started: bool
    intervals: tuple[Interval, ...]
    queues: tuple[Queue, ...]
    histogram: tuple[Bucket, ...]
    figures: Figures
    complaints: tuple[str, ...]
    """Lines that begin with FATAL or ALERT."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Figures of a complete report that this one lacks."""
        return tuple(name for name in _FIGURES if name not in self.figures)

    def figure(self, name: str) -> float:
        """First figure of a line."""
        return self.figures[name][0]

    def count(self, name: str) -> int:
        """First figure of a line, as a whole number."""
        return int(self.figures[name][0])


def read_output(text: str) -> Printed:
    """Parse all output, with any kind of line end; unknown lines are skipped.

    A last line without its end was cut, so its figures are ignored.
    """
    *lines, rest = whole_lines(text)
    return Printed(
        started=has_started(lines),
        intervals=tuple(_interval(match) for line in lines if (match := _WINDOW.fullmatch(line.rstrip()))),
        queues=tuple(
            Queue(*(int(figure) for figure in match.groups()))
            for line in lines
            if (match := _QUEUE.fullmatch(line.rstrip()))
        ),
        histogram=histogram_in(lines),
        figures=figures_in(lines, {**_FIGURES, **_OTHERS}),
        complaints=complaints_in((*lines, rest)),
    )


def whole_lines(text: str) -> list[str]:
    """Split text at any kind of line end; the last item is the text after the last line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def has_started(lines: Sequence[str]) -> bool:
    """Whether sysbench started its threads."""
    return any(line.startswith("Threads started!") for line in lines)


def figures_in(lines: Sequence[str], patterns: Mapping[str, re.Pattern[str]]) -> Figures:
    """Name of a pattern → figures of its last matching line."""
    figures: dict[str, tuple[float, ...]] = {}
    for line in lines:
        for name, pattern in patterns.items():
            if match := pattern.fullmatch(line.rstrip()):
                figures[name] = tuple(float(figure) for figure in match.groups())
    return figures


def histogram_in(lines: Sequence[str]) -> tuple[Bucket, ...]:
    """Buckets of the histogram."""
    matches = (_BUCKET.fullmatch(line.rstrip()) for line in lines)
    return tuple(Bucket(float(match.group(1)), int(match.group(2))) for match in matches if match)


def complaints_in(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines that begin with FATAL or ALERT."""
    return tuple(line.strip() for line in lines if _COMPLAINT.match(line))


def _interval(match: re.Match[str]) -> Interval:
    end, threads, *figures = match.groups()
    tps, qps, reads, writes, others, percent, latency, errors, reconnects = map(float, figures)
    p95 = latency if percent == 95 else None
    return Interval(int(end), int(threads), tps, qps, reads, writes, others, p95, errors, reconnects)
