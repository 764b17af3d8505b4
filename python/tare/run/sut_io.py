"""Bytes between the SUT and block devices over the measure phase, read off the run's trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tare.monitors import SUT
from tare.run.monitoring import DIRECTORY

_NS = 1e9


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
    if usage is None or not trace.is_dir() or usage.get("ended_monotonic_s") is None:
        return usage
    began_ns, ended_ns = (usage[key] * _NS for key in ("began_monotonic_s", "ended_monotonic_s"))
    for source in SOURCES:
        table = _rows(trace, source)
        read = growth(table, source.at, source.read, began_ns, ended_ns)
        written = growth(table, source.at, source.written, began_ns, ended_ns)
        if read is not None or written is not None:
            told = {"sut_read_bytes": read, "sut_write_bytes": written, "sut_io_source": source.name}
            return {**usage, **told}
    return usage


def growth(table: pl.DataFrame, at: str, column: str, began_ns: float, ended_ns: float) -> float | None:
    """By how much a counter grew between two moments, summed over targets; between samples it is taken as even.

    A target that came in between began at zero, and one that went counts as far as it was seen. `None` where no
    sample tells of the time in between.
    """
    known = table.drop_nulls([at, column])
    times = known[at].to_numpy()
    if not len(times) or times.min() > ended_ns or times.max() < began_ns:
        return None
    total = 0.0
    for _, rows in known.sort(at).group_by("target"):
        x, y = rows[at].to_numpy(), rows[column].to_numpy().astype(float)
        before = float(np.interp(began_ns, x, y, left=0.0))
        total += float(np.interp(ended_ns, x, y, left=0.0)) - before
    return total


def _rows(trace: Path, source: Source) -> pl.DataFrame:
    path = trace / f"{source.table}.parquet"
    wanted = ("target", "name", source.at, source.read, source.written)
    if not path.is_file():
        return pl.DataFrame(schema=dict.fromkeys(wanted, pl.Int64))
    return pl.read_parquet(path, columns=list(wanted)).filter(pl.col("name") == SUT)
