"""The two halves of a duet's measure phase: which windows count, and the rate of each half. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.errors import RunFailed
from tare.record.duet import DuetTimes, SwapHalf
from tare.record.load_time import Bounds, spans_of
from tare.record.measurement import Window
from tare.record.run_record import RunRecord


@dataclass(frozen=True)
class Swap:
    """Start and end of the swap of the CPU sets, on the monotonic clock."""

    began_s: float
    ended_s: float


def overlap_s(both: Sequence[Bounds]) -> tuple[float, float]:
    """Return start and end of the time in which both generators drove load, given the bounds of their starts."""
    return max(one.latest_s for one in both), min(one.earliest_s + one.seconds for one in both)


def split_at_swap(
    windows: Sequence[Window], own: Bounds, both_s: tuple[float, float], swap: Swap
) -> tuple[SwapHalf, SwapHalf]:
    """Split the windows of one arm at the swap. `both_s`: see `overlap_s`. All times are on one monotonic clock.

    A window counts if it lies within a half for every start of the generator within its bounds; other windows, such
    as those that touch the swap, are dropped, not split. Raises `RunFailed` if a half has no window or no
    throughput.
    """
    ends = [window.end_s for window in windows]
    kept = [
        [rate for at in half if (rate := windows[at].throughput_per_s) is not None]
        for half in _kept(ends, own, both_s, swap)
    ]
    if not all(kept):
        raise RunFailed(
            f"one half of the duet has no complete window with both arms, {_lengths(own, both_s, swap)}",
            hint="make workload.measure_s longer, or window_s shorter; a warm-up shows how long a generator "
            "takes to start",
        )
    first, second = (SwapHalf(len(half), fmean(half)) for half in kept)
    if not (first.throughput_per_s > 0 and second.throughput_per_s > 0):
        raise RunFailed("the server did not answer in any complete window of one half of the duet")
    return first, second


def _lengths(own: Bounds, both_s: tuple[float, float], swap: Swap) -> str:
    """Return what decides whether a window fits into a half: late starts show in all three figures."""
    first_s, second_s = max(0.0, swap.began_s - both_s[0]), max(0.0, both_s[1] - swap.ended_s)
    known_s = own.latest_s - own.earliest_s
    start = f"the generator's start is known to {known_s:.1f} s"
    return f"which are {first_s:.1f} s and {second_s:.1f} s long, and {start}"


def _kept(ends_s: Sequence[float], own: Bounds, both_s: tuple[float, float], swap: Swap) -> Iterator[list[int]]:
    """Yield the indexes of the windows in the first half, then of those in the second half."""
    placed = list(zip(spans_of(ends_s, own.earliest_s), spans_of(ends_s, own.latest_s), strict=True))
    for low, high in ((both_s[0], swap.began_s), (swap.ended_s, both_s[1])):
        yield [at for at, (soonest, last) in enumerate(placed) if soonest.began_s >= low and last.ended_s <= high]


def windows_kept(record: RunRecord) -> tuple[list[Window], list[Window]] | None:
    """Return the windows of a duet's run that count, by half; `None` for a run alone or without a result.

    Older records have no bounds; their windows were cut by the start of the client's process.
    """
    duet, windows = record.duet, record.measurement and record.measurement.windows
    if not windows or duet is None or duet.started_s is None:
        return None
    if (
        duet.both_from_s is None
        or duet.both_until_s is None
        or duet.swap_began_s is None
        or duet.swap_ended_s is None
    ):
        return None
    began_from_s, began_until_s = (
        duet.started_s if bound is None else bound for bound in (duet.began_from_s, duet.began_until_s)
    )
    both_s, swap = (duet.both_from_s, duet.both_until_s), Swap(duet.swap_began_s, duet.swap_ended_s)
    ends = [window.end_s for window in windows]
    first, second = _kept(ends, Bounds(began_from_s, began_until_s, seconds=ends[-1]), both_s, swap)
    return [windows[at] for at in first], [windows[at] for at in second]


def throughput_of(record: RunRecord) -> float | None:
    """Return the operations a second of a run, by which arms are compared.

    In a duet, the geometric mean of the two halves: the ratio of two arms is then the mean of both halves' log
    ratios, and the difference between the CPU sets cancels, as each arm ran on both.
    """
    return rate_of(record.measurement and record.measurement.throughput_per_s, record.duet)


def rate_of(throughput_per_s: float | None, duet: DuetTimes | None) -> float | None:
    """Return what `throughput_of` does, from these parts of a record."""
    if duet is not None and (rates := duet.rates) is not None:
        return math.sqrt(rates[0] * rates[1])
    return None if throughput_per_s is None or duet is not None else float(throughput_per_s)
