"""How busy the busiest disk was in the measure phase, read off the run's trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from tare.run.span import Span
from tare.run.traced import growth, span_of

_AT = "t0_ns"
_TIMES = ("read_ms", "write_ms", "discard_ms", "flush_ms")
_MS, _NS = 1e3, 1e9
_SECTOR = 512


@dataclass(frozen=True)
class DiskUse:
    """A block device of the host over the measure phase; `None`: the trace does not tell.

    `busy`: share of the time with any request under way. `depth`: requests under way in the mean, by Little's law
    their times added up over the time. `read_ms`, `write_ms`: of one request, in the mean.
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


def with_disk_use(usage: Mapping[str, Any] | None, trace: Path) -> Mapping[str, Any] | None:
    """`usage` with `disk`: the `DiskUse` of the busiest device; without it where the trace tells of none."""
    phase, path = span_of(usage), trace / "disk.parquet"
    if usage is None or phase is None or not path.is_file():
        return usage
    found = busiest(pl.read_parquet(path), phase)
    return usage if found is None else {**usage, "disk": dataclasses.asdict(found)}


def busiest(disks: pl.DataFrame, phase: Span) -> DiskUse | None:
    """The device that was busy for most of the time, of two that were alike the one with more requests under way.

    Which of them the SUT's data lies on is not asked: where the busiest one was idle, so were all.
    """
    uses = [_use(str(name), rows, phase) for (name,), rows in disks.group_by("name", maintain_order=True)]
    known = [use for use in uses if use is not None]
    return max(known, key=lambda use: (use.busy, use.depth), default=None)


def _use(name: str, rows: pl.DataFrame, phase: Span) -> DiskUse | None:
    """A kernel may count a whole tick as busy for a short request: no more than `depth` can be.

    A device that came in between is left out, as its counters may have begun long before.
    """
    seconds, first = phase.ended_s - phase.began_s, rows[_AT].min()
    if not isinstance(first, int) or first > phase.began_s * _NS:
        return None
    grown = {column: growth(rows, _AT, column, phase) for column in (*_COUNTERS, *_TIMES)}
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


_COUNTERS = ("busy_ms", "reads", "writes", "read_sectors", "written_sectors")
