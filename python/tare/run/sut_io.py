"""Bytes between the SUT and block devices over the measure phase, read off the run's trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from tare.monitors import OF_SUT
from tare.run.monitoring import DIRECTORY
from tare.run.span import Span
from tare.run.traced import growth, span_of


@dataclass(frozen=True)
class Source:
    """Columns of one table of the trace that tell of the same bytes. `at`: when they were read."""

    name: str
    table: str
    at: str
    read: str
    written: str


SOURCES = (
    Source("tp_btf/block_rq_complete", "cgroup", "block_at_ns", "block_read_bytes", "block_written_bytes"),
    Source("control group", "cgroup", "io_t0_ns", "read_bytes", "written_bytes"),
    Source("BFQ", "cgroup", "bfq_t0_ns", "bfq_read_bytes", "bfq_written_bytes"),
    Source("/proc/PID/io", "process", "io_t0_ns", "read_bytes", "written_bytes"),
)
"""In the order of trust: the first that has values counts. On control groups v1 the second is empty until a
throttle rule exists, and the last counts what a process dirtied, whether or not it has reached a device."""


def with_sut_io(usage: Mapping[str, Any] | None, raw: Path) -> Mapping[str, Any] | None:
    """`usage` with the SUT's bytes, which stay `None` where no source had any values: empty is not zero."""
    trace = raw / DIRECTORY / "probe" / "trace"
    phase = span_of(usage)
    if usage is None or phase is None or not trace.is_dir():
        return usage
    for source in SOURCES:
        table = _rows(trace, source)
        read = _of_all(table, source.at, source.read, phase)
        written = _of_all(table, source.at, source.written, phase)
        if read is not None or written is not None:
            told = {"sut_read_bytes": read, "sut_write_bytes": written, "sut_io_source": source.name}
            return {**usage, **told}
    return usage


def _of_all(table: pl.DataFrame, at: str, column: str, phase: Span) -> float | None:
    """Of all nodes together; `None` where one of them is not told of."""
    each = [growth(rows, at, column, phase) for _, rows in table.group_by("name")]
    known = [grown for grown in each if grown is not None]
    return sum(known) if known and len(known) == len(each) else None


def _rows(trace: Path, source: Source) -> pl.DataFrame:
    path = trace / f"{source.table}.parquet"
    wanted = ("target", "name", source.at, source.read, source.written)
    if not path.is_file():
        return pl.DataFrame(schema=dict.fromkeys(wanted, pl.Int64))
    return pl.read_parquet(path, columns=list(wanted)).filter(pl.col("name").str.contains(OF_SUT))
