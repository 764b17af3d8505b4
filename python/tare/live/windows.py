"""Throughput and latency of a current run, from what its generator has printed so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from tare.live.output import decode_text, read_from, written_at
from tare.record.load_time import Span, locate_load, spans_of
from tare.workloads.cassandra_stress import output as cassandra_stress_output
from tare.workloads.sysbench import output as sysbench_output
from tare.workloads.ycsb import output as ycsb_output

MOST_POINTS = 240
"""Most points of a line on the page."""
P95 = "95th percentile"


@dataclass(frozen=True)
class Point:
    """One window. `second`: its end, since the generator began; once placed: its middle, since second 0.

    `None`: the generator does not report the value.
    """

    second: float
    throughput_per_s: float | None
    latency_ms: float | None


@dataclass(frozen=True)
class Live:
    """How to read a generator's lines while it works. `stream`: where it prints them; `unit`: what it counts."""

    stream: str
    unit: str
    latency: str
    read: Callable[[str], Sequence[Point]]


def _sysbench(text: str) -> list[Point]:
    return [Point(one.end_s, one.tps, one.latency_p95_ms) for one in sysbench_output.read_output(text).intervals]


def _ycsb(text: str) -> list[Point]:
    return [Point(one.end_s, one.rate_per_s, _mean_ms(one)) for one in ycsb_output.read_output(text).statuses]


def _mean_ms(status: ycsb_output.Status) -> float | None:
    """Mean over the kinds of operations, weighted by count, without those timed from the intended send."""
    kinds = [kind for name, kind in status.kinds.items() if not name.startswith(("Intended-", "CLEANUP"))]
    known = [(kind.mean_us, kind.count) for kind in kinds if kind.mean_us is not None and kind.count]
    total = sum(count for _, count in known)
    return sum(mean * count for mean, count in known) / total / 1000 if total else None


def _cassandra_stress(text: str) -> list[Point]:
    printed = cassandra_stress_output.read_output(text).intervals
    totals = [
        one.figures for one in printed if one.kind == cassandra_stress_output.TOTAL and "time_s" in one.figures
    ]
    ends = [max(0.0, one["time_s"] - cassandra_stress_output.EARLY_S) for one in totals]
    return [Point(end_s, one.get("op_rate"), one.get("p95_ms")) for end_s, one in zip(ends, totals, strict=True)]


GENERATORS: Mapping[str, Live] = {
    "sysbench": Live("stdout", "transactions", P95, _sysbench),
    "ycsb": Live("stderr", "operations", "mean", _ycsb),
    "cassandra-stress": Live("stdout", "operations", P95, _cassandra_stress),
}
"""Workload → how it reports while it works. Others report at the end; the page then shows the last finished run."""


@dataclass
class Follower:
    """Reads complete lines from where it stopped last time. `decode`: the file's bytes → printed text.

    `began_at`: start of the generator, in seconds since the epoch. At the last write to its file, it had printed
    all windows in the file, so it began at least their duration before that.
    """

    path: Path
    read: Callable[[str], Sequence[Point]]
    decode: Callable[[bytes], str] = decode_text
    offset: int = 0
    points: list[Point] = field(default_factory=list)
    began_at: float | None = None

    def look(self) -> Sequence[Point]:
        """All windows so far."""
        content = read_from(self.path, self.offset)
        whole = content[: content.rfind(b"\n") + 1]
        if whole:
            self.offset += len(whole)
            self.points += _read_what_can_be(self.read, self.decode(whole))
            self._place()
        return self.points

    def _place(self) -> None:
        """Called after reading: later writes only delay the estimated start, and the earliest estimate is kept."""
        wrote = written_at(self.path)
        if wrote is not None and self.points:
            began = locate_load(Span(wrote, wrote), self.points[-1].second).began_monotonic_s
            self.began_at = began if self.began_at is None else min(began, self.began_at)


def _read_what_can_be(read: Callable[[str], Sequence[Point]], text: str) -> list[Point]:
    """Windows of all lines but those that cannot be read: a client may print anything, such as 5000 digits."""
    try:
        return list(read(text))
    except (ValueError, RecursionError):
        lines = text.splitlines(keepends=True)
    half = len(lines) // 2
    return [
        point for part in (lines[:half], lines[half:]) if half for point in _read_what_can_be(read, "".join(part))
    ]


def placed(points: Sequence[Point], began_s: float) -> list[Point]:
    """Move each point to the middle of its window, for a generator that began at that second."""
    spans = spans_of([point.second for point in points], began_s)
    return [
        replace(point, second=(span.began_s + span.ended_s) / 2) for point, span in zip(points, spans, strict=True)
    ]


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """Reduce to at most `most` points: neighbours are merged into their means, times included."""
    each = -(-len(points) // most) if points else 1
    groups = [points[at : at + each] for at in range(0, len(points), each)]
    return [
        Point(
            fmean(one.second for one in group),
            _mean([one.throughput_per_s for one in group]),
            _mean([one.latency_ms for one in group]),
        )
        for group in groups
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
