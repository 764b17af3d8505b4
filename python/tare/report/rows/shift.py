"""Shifts of latency as rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tare.analyze.statistics.quantile_shift import PERCENTS, Quantile, QuantileShift
from tare.report.figures import NONE, WITHIN_RESOLUTION, decimals_of, interval, percent
from tare.report.plain import plain


@dataclass(frozen=True)
class ShiftRows:
    """A column for each quantile, a row for each arm: its name, blocks, and the shift with its interval."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def shift_rows(shifts: Sequence[QuantileShift]) -> ShiftRows:
    """Return the rows; quantiles that no arm has are left out."""
    percents = [
        each for each in PERCENTS if any(each == one.percent for shift in shifts for one in shift.quantiles)
    ]
    return ShiftRows(
        ("arm", "n", *(label(each) for each in percents)), tuple(_row(shift, percents) for shift in shifts)
    )


def _row(shift: QuantileShift, percents: Sequence[float]) -> tuple[str, ...]:
    shifts = {one.percent: shifted(one) for one in shift.quantiles}
    counts = {one.estimate.n for one in shift.quantiles}
    return (plain(title(shift, 60), 90), str(max(counts)), *(shifts.get(each, NONE) for each in percents))


def label(percent_of_events: float) -> str:
    """Format a quantile: `p95`, `p99.9`."""
    return f"p{percent_of_events:g}"


def title(one: QuantileShift, longest: int = 40) -> str:
    """Name the arm, with the kind of operation if there are several."""
    arm = plain(one.arm, longest)
    return arm if one.operation is None else f"{arm}, {plain(one.operation, 20)}"


def shifted(one: Quantile) -> str:
    """Format a shift: `+8.5 % [+6.1, +10.9]`, or marked `+0.8 %† [-16, +22]` if the generator cannot resolve it."""
    bounds = interval(one.estimate)
    mark = "" if one.resolved else WITHIN_RESOLUTION
    middle = percent(one.estimate.point, decimals_of(one.estimate)) + mark
    return middle if bounds == NONE else f"{middle} {bounds}"
