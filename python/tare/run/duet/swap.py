"""The two halves of a duet's measure phase: which windows count, and the rate of each half. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tare.errors import RunFailed
from tare.run.duet.barrier import Swap
from tare.run.record import RunRecord
from tare.run.usage.driven import Bounds, spans_of
from tare.workloads import Window

_PLACED = ("started_s", "both_from_s", "swap_began_s", "swap_ended_s", "both_until_s")


@dataclass(frozen=True)
class SwapHalf:
    """Windows of one half in which both arms were measured on unchanging CPUs, and their mean rate."""

    windows: int
    throughput_per_s: float


def both_drove(both: Sequence[Bounds]) -> tuple[float, float]:
    """From when to when both generators drove, wherever within their bounds they began."""
    return max(one.latest_s for one in both), min(one.earliest_s + one.seconds for one in both)


def split_at_swap(
    windows: Sequence[Window], own: Bounds, both_s: tuple[float, float], swap: Swap
) -> tuple[SwapHalf, SwapHalf]:
    """The halves of one arm. `both_s`: from when to when both generators drove. All on one monotonic clock.

    A window counts where it lies within a half wherever within its bounds the generator began; others, as those
    that touch the swap, are dropped, not split. Raises `RunFailed` where a half is left without a window, or
    stood still.
    """
    ends = [window.end_s for window in windows]
    kept = [[windows[at] for at in half] for half in _kept(ends, own, both_s, swap)]
    if not all(kept):
        raise RunFailed(
            "one half of the duet has no complete window with both arms",
            hint="make workload.measure_s longer, or window_s shorter; a warm-up shows how long a generator "
            "takes to start",
        )
    first, second = (SwapHalf(len(half), fmean(window.throughput_per_s for window in half)) for half in kept)
    if not (first.throughput_per_s > 0 and second.throughput_per_s > 0):
        raise RunFailed("the server did not answer in any complete window of one half of the duet")
    return first, second


def _kept(ends_s: Sequence[float], own: Bounds, both_s: tuple[float, float], swap: Swap) -> Iterator[list[int]]:
    """The numbers of the windows that lie in the first half, and of those in the second."""
    placed = list(zip(spans_of(ends_s, own.earliest_s), spans_of(ends_s, own.latest_s), strict=True))
    for low, high in ((both_s[0], swap.began_s), (swap.ended_s, both_s[1])):
        yield [at for at, (soonest, last) in enumerate(placed) if soonest.began_s >= low and last.ended_s <= high]


def windows_kept(record: RunRecord) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] | None:
    """The windows of a duet's run that count, by halves; `None` of a run that was alone or came to nothing.

    Of older records without bounds by the process's start, by which they were cut.
    """
    duet: Mapping[str, Any] = record.duet or {}
    windows = (record.measurement or {}).get("windows")
    if not windows or any(duet.get(key) is None for key in _PLACED):
        return None
    began = (duet.get("began_from_s", duet["started_s"]), duet.get("began_until_s", duet["started_s"]))
    both_s, swap = (duet["both_from_s"], duet["both_until_s"]), Swap(duet["swap_began_s"], duet["swap_ended_s"])
    ends = [float(window["end_s"]) for window in windows]
    first, second = _kept(ends, Bounds(*began, seconds=ends[-1]), both_s, swap)
    return [windows[at] for at in first], [windows[at] for at in second]


def throughput_of(record: RunRecord) -> float | None:
    """Operations a second of a run, by which arms are compared.

    In a duet the geometric mean of the two halves: the ratio of two arms is then the mean of the log ratios of both
    halves, and what the CPU sets differ by, each arm having had either, drops out.
    """
    return rate_of((record.measurement or {}).get("throughput_per_s"), record.duet)


def rate_of(throughput_per_s: float | None, duet: Mapping[str, Any] | None) -> float | None:
    """As `throughput_of`, from those parts of a record."""
    rates = _rates_of(duet)
    if rates is not None:
        return math.sqrt(rates[0] * rates[1])
    return None if throughput_per_s is None or duet is not None else float(throughput_per_s)


def rates_around_swap(record: RunRecord) -> tuple[float, float] | None:
    """The rates of both halves, `None` of a run that was alone or came to nothing."""
    return _rates_of(record.duet)


def _rates_of(duet: Mapping[str, Any] | None) -> tuple[float, float] | None:
    by_half: Any = (duet or {}).get("halves")
    if not by_half:
        return None
    first, second = (float(half["throughput_per_s"]) for half in by_half)
    return first, second
