"""Disk use of a run in its measure phase, from its trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tare.monitors import OF_SUT
from tare.run.usage.driven import Span, driving
from tare.run.usage.trace import Elsewhere, growth, read_all, span_of

_HOST_AT = "t0_ns"
_TIMES = ("read_ms", "write_ms", "discard_ms", "flush_ms")
_MS, _NS = 1e3, 1e9
_SECTOR = 512


_COUNTERS = ("busy_ms", "reads", "writes", "read_sectors", "written_sectors")
_GROUP_AT = "io_t0_ns"
_WAYS = ("reads", "writes")
_WINDOW_S = 0.2
"""About the probe's period, and twice the throttle's slice of 100 ms (block/blk-throttle.c)."""
_SLACK_S = 1.0
"""Tolerated time without samples at the ends of the phase."""


@dataclass(frozen=True)
class DiskUse:
    """A block device of the host over the measure phase; `None`: the trace has no figure.

    `busy`: share of the time with any request in flight. `depth`: mean number of requests in flight, by Little's
    law their summed times over the length of the phase. `read_ms`, `write_ms`: mean time of one request.
    """

    name: str
    busy: float
    depth: float
    reads_per_s: float | None
    writes_per_s: float | None
    read_bytes_per_s: float | None
    written_bytes_per_s: float | None
    read_ms: float | None
    write_ms: float | None


def with_disk_use(
    usage: Mapping[str, Any] | None, trace: Path, nodes: Sequence[Elsewhere] = ()
) -> Mapping[str, Any] | None:
    """Add `disk` to `usage`: the `DiskUse` of the busiest device; unchanged if the trace has none.

    `nodes`: the traces of further nodes' hosts.
    """
    phase = span_of(usage)
    if usage is None or phase is None or (disks := read_all(trace, nodes, "disk")) is None:
        return usage
    busiest_disk = busiest(disks, phase)
    return usage if busiest_disk is None else {**usage, "disk": dataclasses.asdict(busiest_disk)}


def busiest(disks: pl.DataFrame, phase: Span) -> DiskUse | None:
    """Return the device that was busy for most of the time; for equal ones, the one with more requests in flight.

    Which device holds the SUT's data does not matter: if the busiest was idle, all were.
    """
    uses = [_use(str(name), rows, phase) for (name,), rows in disks.group_by("name", maintain_order=True)]
    known = [use for use in uses if use is not None]
    return max(known, key=lambda use: (use.busy, use.depth), default=None)


def _use(name: str, rows: pl.DataFrame, phase: Span) -> DiskUse | None:
    """Return the use of one device; `busy` is at most `depth`: kernels may count a tick for a short request.

    A device that appeared during the phase is left out, since its counters may have started long before.
    """
    seconds, first = phase.ended_s - phase.began_s, rows[_HOST_AT].min()
    if not isinstance(first, int) or first > phase.began_s * _NS:
        return None
    grown = {column: growth(rows, _HOST_AT, column, phase) for column in (*_COUNTERS, *_TIMES)}
    times = [grown[column] for column in _TIMES]
    busy_ms, known = grown["busy_ms"], [each for each in times if each is not None]
    if busy_ms is None or not known or seconds <= 0:
        return None
    depth = sum(known) / _MS / seconds

    def rate(column: str, unit: int = 1) -> float | None:
        value = grown[column]
        return None if value is None else value * unit / seconds

    return DiskUse(
        name=name,
        busy=min(busy_ms / _MS / seconds, depth, 1.0),
        depth=depth,
        reads_per_s=rate("reads"),
        writes_per_s=rate("writes"),
        read_bytes_per_s=rate("read_sectors", _SECTOR),
        written_bytes_per_s=rate("written_sectors", _SECTOR),
        read_ms=_each(grown["read_ms"], grown["reads"]),
        write_ms=_each(grown["write_ms"], grown["writes"]),
    )


def _each(total: float | None, count: float | None) -> float | None:
    return total / count if total is not None and count else None


@dataclass(frozen=True)
class DiskLimit:
    """A limit on reads a second and as many writes a second, and the share of the time in which it held the SUT up.

    `used`: share of the time under load in which reads or writes waited for the limit or passed at its rate; of
    several nodes, the highest. Cgroup v1 counts operations as they reach the limit (`blk_should_throtl` in
    block/blk-throttle.h): a burst of a hundred delays everything behind it, so arrivals are modelled as a queue
    that drains at the limit's rate. V2 counts behind the limit, where that queue is short. In each 0.2 s, the
    higher share of reads and writes counts, so turns within that time are underestimated. The disk does not see
    what waits for a limit: it may be idle (`DiskUse`) while everything waits.
    """

    per_s: int
    used: float


def with_disk_limit(
    usage: Mapping[str, Any] | None, trace: Path, per_s: int | None, nodes: Sequence[Elsewhere] = ()
) -> Mapping[str, Any] | None:
    """Add `disk_limit` to `usage`, a `DiskLimit`; unchanged without a limit or figures in the trace."""
    phase = driving(usage) or span_of(usage)
    if usage is None or per_s is None or phase is None:
        return usage
    groups = read_all(trace, nodes, "cgroup", ["name", "target", _GROUP_AT, *_WAYS])
    if groups is None:
        return usage
    used = share_used(groups.filter(pl.col("name").str.contains(OF_SUT)), phase, per_s)
    return usage if used is None else {**usage, "disk_limit": dataclasses.asdict(DiskLimit(per_s, used))}


def share_used(groups: pl.DataFrame, phase: Span, per_s: int) -> float | None:
    """Return `DiskLimit.used` of the SUT's groups; `None` if one of them has no samples for the whole phase."""
    parts = [_part(rows.sort(_GROUP_AT), phase, per_s) for _, rows in groups.group_by("target")]
    known = [part for part in parts if part is not None]
    return max(known) if known and len(known) == len(parts) else None


def _part(rows: pl.DataFrame, phase: Span, per_s: int) -> float | None:
    known = [rows.drop_nulls([_GROUP_AT, way]).select(pl.col(_GROUP_AT) / _NS, way) for way in _WAYS]
    shares = [(way[:, 0].to_numpy(), way[:, 1].to_numpy()) for way in known if _covers(way[_GROUP_AT], phase)]
    if not shares:
        return None
    windows = max(1, round((phase.ended_s - phase.began_s) / _WINDOW_S))
    width_s = (phase.ended_s - phase.began_s) / windows
    before = int(max(0.0, phase.began_s - min(times[0] for times, _ in shares)) / width_s)
    edges_s = phase.began_s + width_s * np.arange(-before, windows + 1)
    held = [_share_held_up(np.diff(np.interp(edges_s, *counter)), per_s * width_s) for counter in shares]
    return float(np.max(held, axis=0)[before:].mean())


def _covers(times_s: pl.Series, phase: Span) -> bool:
    """Whether samples cover the phase, up to `_SLACK_S` at each end."""
    near = (phase.began_s + _SLACK_S, phase.ended_s - _SLACK_S)
    return len(times_s) > 0 and times_s[0] <= near[0] and times_s[-1] >= near[1]


def _share_held_up(came: np.ndarray, allowance: float) -> np.ndarray:
    """Return for each window the share in which the limit, which passes `allowance`, had something to pass."""
    held, waiting = np.empty(len(came)), 0.0
    for window, new in enumerate(came):
        held[window] = min((waiting + new) / allowance, 1.0)
        waiting = max(waiting + new - allowance, 0.0)
    return held


@dataclass(frozen=True)
class Source:
    """Columns of a table in the trace that count the same bytes. `at`: when they were read."""

    name: str
    table: str
    at: str
    read: str
    written: str


SOURCES = (
    Source("tp_btf/block_rq_issue", "cgroup", "block_at_ns", "block_read_bytes", "block_written_bytes"),
    Source("control group", "cgroup", "io_t0_ns", "read_bytes", "written_bytes"),
    Source("BFQ", "cgroup", "bfq_t0_ns", "bfq_read_bytes", "bfq_written_bytes"),
    Source("/proc/PID/io", "process", "io_t0_ns", "read_bytes", "written_bytes"),
)
"""In order of trust; the first with values counts. On control groups v1, the second is empty until a throttle rule
exists, and the last counts what a process dirtied, whether or not it has reached a device."""


def with_sut_io(
    usage: Mapping[str, Any] | None, trace: Path, nodes: Sequence[Elsewhere] = ()
) -> Mapping[str, Any] | None:
    """Add the SUT's bytes to `usage`; they stay `None` if no source has values: empty is not zero."""
    phase = span_of(usage)
    if usage is None or phase is None or not trace.is_dir():
        return usage
    for source in SOURCES:
        table = _rows(trace, nodes, source)
        read = _of_all(table, source.at, source.read, phase)
        written = _of_all(table, source.at, source.written, phase)
        if read is not None or written is not None:
            figures = {"sut_read_bytes": read, "sut_write_bytes": written, "sut_io_source": source.name}
            return {**usage, **figures}
    return usage


def _of_all(table: pl.DataFrame, at: str, column: str, phase: Span) -> float | None:
    """Growth over all nodes together; `None` if one is unknown."""
    each = [growth(rows, at, column, phase) for _, rows in table.group_by("name")]
    known = [grown for grown in each if grown is not None]
    return sum(known) if known and len(known) == len(each) else None


def _rows(trace: Path, nodes: Sequence[Elsewhere], source: Source) -> pl.DataFrame:
    wanted = ("target", "name", source.at, source.read, source.written)
    table = read_all(trace, nodes, source.table, wanted)
    if table is None:
        return pl.DataFrame(schema=dict.fromkeys(wanted, pl.Int64))
    return table.filter(pl.col("name").str.contains(OF_SUT))
