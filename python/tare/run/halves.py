"""The two halves of a duet's measure phase: which windows count, and the rate of each half. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tare.errors import RunFailed
from tare.run.record import RunRecord
from tare.run.rendezvous import Swap
from tare.workloads import Window

GUARD = 0.25
"""Share of a window by which it has to keep away from a moment at which something changed: a client tells its
windows from some hundredths of a second after its process began."""


@dataclass(frozen=True)
class Half:
    """Windows of one half in which both arms were measured on unchanging CPUs, and their mean rate."""

    windows: int
    throughput_per_s: float


def halves(
    windows: Sequence[Window], window_s: float, started_s: float, both_s: tuple[float, float], swap: Swap
) -> tuple[Half, Half]:
    """The halves of one arm. Times on one monotonic clock; `both_s`: from when to when both clients ran.

    Windows that touch the start of the later client, the swap or the end of the earlier client are dropped, not
    split. Raises `RunFailed` where a half is left without a window, or stood still.
    """
    guard = GUARD * window_s
    spans = ((both_s[0] + guard, swap.began_s - guard), (swap.ended_s, both_s[1]))
    found = [_half(windows, window_s, low - started_s, high - started_s) for low, high in spans]
    if None in found:
        raise RunFailed(
            "a half of the duet holds no whole window in which both arms were measured",
            hint="make workload.measure_s longer, or window_s shorter",
        )
    first, second = (half for half in found if half is not None)
    return first, second


def _half(windows: Sequence[Window], window_s: float, low: float, high: float) -> Half | None:
    whole = (window for window in windows if window.end_s - window_s >= low and window.end_s <= high)
    kept = [window.throughput_per_s for window in whole]
    rate = fmean(kept) if kept else 0.0
    return Half(len(kept), rate) if rate > 0 else None


def throughput_of(record: RunRecord) -> float | None:
    """Operations a second of a run, by which arms are compared.

    In a duet the geometric mean of the two halves: the ratio of two arms is then the mean of the log ratios of both
    halves, and what the CPU sets differ by, each arm having had either, drops out.
    """
    rates = half_rates(record)
    if rates is not None:
        return math.sqrt(rates[0] * rates[1])
    rate = (record.measurement or {}).get("throughput_per_s") if record.duet is None else None
    return None if rate is None else float(rate)


def half_rates(record: RunRecord) -> tuple[float, float] | None:
    """The rates of both halves, `None` of a run that was alone or came to nothing."""
    told: Any = (record.duet or {}).get("halves")
    if not told:
        return None
    first, second = (float(half["throughput_per_s"]) for half in told)
    return first, second
