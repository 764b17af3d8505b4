"""How much of what a limit on disk operations lets through the SUT took, read off the run's trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tare.monitors import OF_SUT
from tare.run.driven import driving
from tare.run.traced import span_of
from tare.run.trimming import Span

_AT = "io_t0_ns"
_WAYS = ("reads", "writes")
_WINDOW_S = 1.0
"""Ten times the slice of 100 ms in which the kernel's throttle counts (block/blk-throttle.c)."""
_NS = 1e9


@dataclass(frozen=True)
class DiskLimit:
    """A limit of so many reads and as many writes a second, and the part of it that was used.

    `used`: of each second in which the generator drove, the more of both ways, no more than all of it, in the mean;
    of several nodes the one nearest to its limit. Before a limit requests wait where the disk does not see them, so
    that it may be idle (`run.disk_use`) while it is what everything waits for.
    """

    per_s: int
    used: float


def with_disk_limit(usage: Mapping[str, Any] | None, trace: Path, per_s: int | None) -> Mapping[str, Any] | None:
    """`usage` with `disk_limit`: a `DiskLimit`; without it where there is no limit, or the trace does not tell."""
    phase, path = driving(usage) or span_of(usage), trace / "cgroup.parquet"
    if usage is None or per_s is None or phase is None or not path.is_file():
        return usage
    groups = pl.read_parquet(path, columns=["name", "target", _AT, *_WAYS]).filter(
        pl.col("name").str.contains(OF_SUT)
    )
    used = part_used(groups, phase, per_s)
    return usage if used is None else {**usage, "disk_limit": dataclasses.asdict(DiskLimit(per_s, used))}


def part_used(groups: pl.DataFrame, phase: Span, per_s: int) -> float | None:
    """`DiskLimit.used` of the SUT's groups; `None` where one of them is not told of for all of the phase."""
    parts = [_part(rows.sort(_AT), phase, per_s) for _, rows in groups.group_by("target")]
    known = [part for part in parts if part is not None]
    return max(known) if known and len(known) == len(parts) else None


def _part(rows: pl.DataFrame, phase: Span, per_s: int) -> float | None:
    windows = max(1, round((phase.ended_s - phase.began_s) / _WINDOW_S))
    edges_s = np.linspace(phase.began_s, phase.ended_s, windows + 1)
    ways = [rate for way in _WAYS if (rate := _rates(rows.drop_nulls([_AT, way]), way, edges_s)) is not None]
    if not ways:
        return None
    return float(np.minimum(np.max(ways, axis=0) / per_s, 1.0).mean())


def _rates(known: pl.DataFrame, way: str, edges_s: np.ndarray) -> np.ndarray | None:
    """Operations a second between the edges; `None` where no sample lies within a window of the first and last."""
    times_s = known[_AT].to_numpy() / _NS
    if not len(times_s) or times_s[0] > edges_s[0] + _WINDOW_S or times_s[-1] < edges_s[-1] - _WINDOW_S:
        return None
    counts = np.interp(edges_s, times_s, known[way].to_numpy().astype(float))
    return np.asarray(np.diff(counts) / np.diff(edges_s))
