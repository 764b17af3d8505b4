"""Bottleneck of an arm: what limited the rate of its runs, by their traces."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from tare.analyze.columns import Column, Columns, Rows, known, known_values
from tare.analyze.validity.disk import LIMITS, Limit, all_reached, disk_busy, limit_used, waiting_io
from tare.analyze.validity.load import busy_parts


@dataclass(frozen=True)
class Bottleneck:
    """Medians over an arm's good runs, from their traces; `None`: no run recorded the figure."""

    sut_busy: float | None
    """Share of the CPU time available to the SUT that it used."""
    client_busy: float | None
    """The same of the client."""
    sut_waiting_io: float | None
    """Share of the time in which a thread of the SUT waited for I/O."""
    disk_busy: float | None
    """Share of the time in which the busiest disk had requests."""
    disk_depth: float | None
    """Mean number of requests in flight on that disk."""
    reads_per_s: float | None
    writes_per_s: float | None
    disk_limit_used: float | None
    """Share of the time in which a limit on disk operations delayed the SUT."""
    reached: tuple[Limit, ...] | None
    """Limits that more than half of the runs reached; empty: something else limited the rate; `None`: unknown."""


def bottleneck_of(columns: Columns, rows: Rows | None = None) -> Bottleneck:
    """Bottleneck over the good runs in these rows, which are those of one arm; `None`: all rows."""
    if rows is None:
        rows = np.arange(len(columns.records))
    reached = columns.once(("reached",), lambda: all_reached(columns))
    limits = {limit: column[rows] for limit, column in reached.items()}
    at_limit = {limit: int((column == 1).sum()) for limit, column in limits.items()}
    # A run counts if it reached a limit, or is known to have reached none.
    some = np.any([column == 1 for column in limits.values()], axis=0)
    recorded = int((some | np.all([known(column) for column in limits.values()], axis=0)).sum())
    return Bottleneck(
        sut_busy=_median(busy_parts(columns, "sut")[rows]),
        client_busy=_median(busy_parts(columns, "client")[rows]),
        sut_waiting_io=_median(waiting_io(columns)[rows]),
        disk_busy=_median(disk_busy(columns)[rows]),
        disk_depth=_median(columns.number("usage", "disk", "depth")[rows]),
        reads_per_s=_median(columns.number("usage", "disk", "reads_per_s")[rows]),
        writes_per_s=_median(columns.number("usage", "disk", "writes_per_s")[rows]),
        disk_limit_used=_median(limit_used(columns)[rows]),
        reached=tuple(limit for limit in LIMITS if 2 * at_limit[limit] > len(rows))
        if 2 * recorded > len(rows)
        else None,
    )


def _median(column: Column) -> float | None:
    values = known_values(column)
    return median(values) if values else None
