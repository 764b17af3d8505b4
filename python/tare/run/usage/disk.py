"""Disk use of a run in its measure phase, from its trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tare.monitors import OF_SUT
from tare.record.load_time import Span
from tare.record.trace import SOURCES, IoSource, Traces, growth
from tare.record.turns import Measured
from tare.record.usage import DiskLimit, DiskUse

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


def disk_use_in(traces: Traces, phase: Measured) -> DiskUse | None:
    """Return the use of the busiest device in a phase; `None` if the trace has none."""
    disks = traces.read("disk")
    return None if disks is None else busiest(disks, phase)


def busiest(disks: pl.DataFrame, phase: Measured) -> DiskUse | None:
    """Return the device that was busy for most of the time; for equal ones, the one with more requests in flight.

    Which device holds the SUT's data does not matter: if the busiest was idle, all were.
    """
    uses = [_use(str(name), rows, phase) for (name,), rows in disks.group_by("name", maintain_order=True)]
    known = [use for use in uses if use is not None]
    return max(known, key=lambda use: (use.busy, use.depth), default=None)


def _use(name: str, rows: pl.DataFrame, phase: Measured) -> DiskUse | None:
    """Return the use of one device; `busy` is at most `depth`: kernels may count a tick for a short request.

    A device that appeared during the phase is left out, since its counters may have started long before.
    """
    seconds, first = phase.seconds, rows[_HOST_AT].min()
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


def disk_limit_in(traces: Traces, phase: Span, per_s: int | None) -> DiskLimit | None:
    """Return how much of a phase the limit held the SUT up; `None` without a limit or figures in the trace."""
    groups = None if per_s is None else traces.read("cgroup", ["name", "target", _GROUP_AT, *_WAYS])
    if per_s is None or groups is None:
        return None
    used = share_used(groups.filter(pl.col("name").str.contains(OF_SUT)), phase, per_s)
    return None if used is None else DiskLimit(per_s, used)


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
class SutIo:
    """Bytes between the SUT and block devices, and their source; `None`: no source has values, which is not 0."""

    read_bytes: float | None = None
    written_bytes: float | None = None
    source: str | None = None


def sut_io_in(traces: Traces, phase: Measured) -> SutIo:
    """Return the SUT's bytes in a phase, by the first source with values."""
    for source in SOURCES if traces.trace.is_dir() else ():
        table = _rows(traces, source)
        read = _of_all(table, source.at, source.read, phase)
        written = _of_all(table, source.at, source.written, phase)
        if read is not None or written is not None:
            return SutIo(read, written, source.name)
    return SutIo()


def _of_all(table: pl.DataFrame, at: str, column: str, phase: Measured) -> float | None:
    """Growth over all nodes together; `None` if one is unknown."""
    each = [growth(rows, at, column, phase) for _, rows in table.group_by("name")]
    known = [grown for grown in each if grown is not None]
    return sum(known) if known and len(known) == len(each) else None


def _rows(traces: Traces, source: IoSource) -> pl.DataFrame:
    wanted = ("target", "name", source.at, source.read, source.written)
    table = traces.read(source.table, wanted)
    if table is None:
        return pl.DataFrame(schema=dict.fromkeys(wanted, pl.Int64))
    return table.filter(pl.col("name").str.contains(OF_SUT))
