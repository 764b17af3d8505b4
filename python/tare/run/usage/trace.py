"""Counters of a run's trace over a span of the machine's clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tare.run.usage.driven import Span

_NS = 1e9


def span_of(usage: Mapping[str, Any] | None) -> Span | None:
    """When measuring lasted, as a record's `usage` tells; `None` where it did not come to that."""
    began, ended = ((usage or {}).get(key) for key in ("began_monotonic_s", "ended_monotonic_s"))
    return None if began is None or ended is None else Span(began, ended)


def growth(table: pl.DataFrame, at: str, column: str, phase: Span) -> float | None:
    """By how much a counter grew between two moments, summed over targets; between samples it is taken as even.

    A target that came in between began at zero, and one that went counts as far as it was seen. `None` where no
    sample tells of the time in between.
    """
    began_ns, ended_ns = phase.began_s * _NS, phase.ended_s * _NS
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


def cpu_of(trace: Path, names: Collection[str], phase: Span | None) -> float | None:
    """CPU seconds of the processes that bear these names in a trace; `None` where none of them is in it."""
    path = trace / "process.parquet"
    if phase is None or not path.is_file():
        return None
    table = pl.read_parquet(path, columns=["target", "name", "cpu_t0_ns", "cpu_ns"])
    used_ns = growth(table.filter(pl.col("name").is_in(list(names))), "cpu_t0_ns", "cpu_ns", phase)
    return None if used_ns is None else used_ns / _NS
