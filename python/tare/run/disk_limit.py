"""For how much of the time a limit on disk operations held the SUT up, read off the run's trace."""

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
from tare.run.span import Span
from tare.run.traced import span_of

_AT = "io_t0_ns"
_WAYS = ("reads", "writes")
_WINDOW_S = 0.2
"""About the probe's period, and twice the throttle's slice of 100 ms (block/blk-throttle.c)."""
_SLACK_S = 1.0
"""So much of the phase's ends may be without a sample."""
_NS = 1e9


@dataclass(frozen=True)
class DiskLimit:
    """A limit of so many reads and as many writes a second, and the part of the time in which it held the SUT up.

    `used`: of the time in which the generator drove, the part in which reads or writes waited before the limit
    or passed it at its rate; of several nodes of the one nearest to it. Cgroup v1 counts operations as they
    reach the limit (`blk_should_throtl` in block/blk-throttle.h): a hundred that come at once hold up all that
    comes until a hundred have passed, so what came is taken as a queue that empties at the limit's rate. V2
    counts behind the limit, where that queue is short. Of each 0.2 s the more of both ways counts, so that
    turns taken within it come out too low. What waits before a limit the disk does not see: it may be idle
    (`run.disk_use`) while all wait for it.
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
    known = [rows.drop_nulls([_AT, way]).select(pl.col(_AT) / _NS, way) for way in _WAYS]
    told = [(way[:, 0].to_numpy(), way[:, 1].to_numpy()) for way in known if _covers(way[_AT], phase)]
    if not told:
        return None
    windows = max(1, round((phase.ended_s - phase.began_s) / _WINDOW_S))
    width_s = (phase.ended_s - phase.began_s) / windows
    before = int(max(0.0, phase.began_s - min(times[0] for times, _ in told)) / width_s)
    edges_s = phase.began_s + width_s * np.arange(-before, windows + 1)
    held = [_held_up(np.diff(np.interp(edges_s, *counter)), per_s * width_s) for counter in told]
    return float(np.max(held, axis=0)[before:].mean())


def _covers(times_s: pl.Series, phase: Span) -> bool:
    """Whether there are samples near the phase's begin, or before it, and near its end, or after it."""
    near = (phase.began_s + _SLACK_S, phase.ended_s - _SLACK_S)
    return len(times_s) > 0 and times_s[0] <= near[0] and times_s[-1] >= near[1]


def _held_up(came: np.ndarray, room: float) -> np.ndarray:
    """Of each window the part in which the limit, which lets `room` through in it, has something to let through."""
    held, waiting = np.empty(len(came)), 0.0
    for window, new in enumerate(came):
        held[window] = min((waiting + new) / room, 1.0)
        waiting = max(waiting + new - room, 0.0)
    return held
