"""The bottleneck of an arm: what limited the rate of its runs, from their traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from tare.analyze.numbers import number_at
from tare.analyze.validity.disk import LIMITS, Limit, disk_busy, limit_used, limits_of, waiting_io
from tare.analyze.validity.load import busy
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
    recorded = [reached for run in good if (reached := limits_of(run)) is not None]
    return Bottleneck(
        sut_busy=_median(good, partial(busy, side="sut")),
        client_busy=_median(good, partial(busy, side="client")),
        sut_waiting_io=_median(good, waiting_io),
        disk_busy=_median(good, disk_busy),
        disk_depth=_median(good, partial(_of_disk, key="depth")),
        reads_per_s=_median(good, partial(_of_disk, key="reads_per_s")),
        writes_per_s=_median(good, partial(_of_disk, key="writes_per_s")),
        disk_limit_used=_median(good, limit_used),
        reached=tuple(limit for limit in LIMITS if 2 * sum(limit in each for each in recorded) > len(good))
        if 2 * len(recorded) > len(good)
        else None,
    )


def _of_disk(run: RunRecord, key: str) -> float | None:
    return number_at(run.usage, ("disk", key))


def _median(runs: Sequence[RunRecord], read: Callable[[RunRecord], float | None]) -> float | None:
    values = [value for run in runs if (value := read(run)) is not None]
    return median(values) if values else None
