"""A figure and its interval as one line of characters, for terminals: a bar from zero, then the interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_BEYOND = 1.0
"""How far an axis follows intervals beyond all points, in spans of the points: a wide one hides no other bar."""


@dataclass(frozen=True)
class Marks:
    """Characters of a bar. `ends`: of an interval; `open_ends`: of one that goes on beyond the axis."""

    zero: str
    bar: str
    line: str
    point: str
    ends: str
    open_ends: str


LINES = Marks(zero="│", bar="█", line="─", point="●", ends="├┤", open_ends="◄►")
LETTERS = Marks(zero="|", bar="=", line="-", point="o", ends="[]", open_ends="<>")


def marks_for(encoding: str | None) -> Marks:
    """Return marks that a stream with this encoding can write."""
    try:
        "".join(vars(LINES).values()).encode(encoding or "utf-8")
    except (LookupError, UnicodeEncodeError):
        return LETTERS
    return LINES


@dataclass(frozen=True)
class BarAxis:
    """Figures at both ends of `width` characters; zero is among them."""

    low: float
    high: float
    width: int

    def at(self, value: float) -> int:
        """Return the character that a figure falls on; what is beyond an end is at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return min(math.floor(share * self.width), self.width - 1)


def bar_axis(points: Sequence[float], bounds: Sequence[float], width: int) -> BarAxis:
    """Return an axis for zero, all points, and `bounds`, the ends of intervals, unless they are far beyond."""
    low, high = min([0.0, *points]), max([0.0, *points])
    reach = _BEYOND * (high - low)
    least = min([low, *(max(bound, low - reach) for bound in bounds)])
    most = max([high, *(min(bound, high + reach) for bound in bounds)])
    return BarAxis(least, most if most > least else least + 1.0, width)


def interval_bar(point: float, low: float | None, high: float | None, axis: BarAxis, marks: Marks) -> str:
    """Draw one figure; `low` and `high`: its interval, if it has one."""
    cells = [" "] * axis.width
    zero, at = axis.at(0.0), axis.at(point)
    cells[min(zero, at) : max(zero, at) + 1] = marks.bar * (abs(at - zero) + 1)
    cells[zero] = marks.zero
    if low is not None and high is not None:
        first, last = axis.at(low), axis.at(high)
        cells[first : last + 1] = marks.line * (last - first + 1)
        if first < last:
            cells[first] = (marks.open_ends if low < axis.low else marks.ends)[0]
            cells[last] = (marks.open_ends if high > axis.high else marks.ends)[1]
        if first < zero < last:
            cells[zero] = marks.zero
    cells[at] = marks.point
    return "".join(cells).rstrip()
