"""The bottleneck of an arm: what limited the rate of its runs, from their traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tare.analyze.columns import Column, Columns, known, known_values
from tare.analyze.validity.disk import LIMITS, Limit, all_reached, disk_busy, limit_used, waiting_io
from tare.analyze.validity.load import busy_parts
from tare.run.record import RunRecord


@dataclass(frozen=True)
class Bottleneck:
    """Medians over an arm's good runs; `None`: no run recorded it.

    `sut_busy`, `client_busy`: part of the CPU time that the side could use. `sut_waiting_io`: share of the time in
    which a thread of the SUT waited for I/O. `disk_busy`, `disk_depth`, `reads_per_s`, `writes_per_s`: of the
    busiest disk, as `run.disk_use.DiskUse`. `disk_limit_used`: as `run.disk_limit.DiskLimit`. `reached`: what was
    at its end in more than half of the runs, nothing where something else set the rate, `None` where half of the
    runs do not tell.
    """

    sut_busy: float | None
    client_busy: float | None
    sut_waiting_io: float | None
    disk_busy: float | None
    disk_depth: float | None
    reads_per_s: float | None
    writes_per_s: float | None
    disk_limit_used: float | None
    reached: tuple[Limit, ...] | None


def bottleneck_of(good: Sequence[RunRecord]) -> Bottleneck:
    """The bottleneck over the good runs of one arm."""
    columns = Columns(good)
    limits = all_reached(columns)
    at_limit = {limit: int((column == 1).sum()) for limit, column in limits.items()}
    # A run tells where it reached one of them, or it is known that it reached none.
    some = np.any([column == 1 for column in limits.values()], axis=0)
    recorded = int((some | np.all([known(column) for column in limits.values()], axis=0)).sum())
    return Bottleneck(
        sut_busy=_median(busy_parts(columns, "sut")),
        client_busy=_median(busy_parts(columns, "client")),
        sut_waiting_io=_median(waiting_io(columns)),
        disk_busy=_median(disk_busy(columns)),
        disk_depth=_median(columns.number("usage", "disk", "depth")),
        reads_per_s=_median(columns.number("usage", "disk", "reads_per_s")),
        writes_per_s=_median(columns.number("usage", "disk", "writes_per_s")),
        disk_limit_used=_median(limit_used(columns)),
        reached=tuple(limit for limit in LIMITS if 2 * at_limit[limit] > len(good))
        if 2 * recorded > len(good)
        else None,
    )


def _median(column: Column) -> float | None:
    values = known_values(column)
    return median(values) if values else None
