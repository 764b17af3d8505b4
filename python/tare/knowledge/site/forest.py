"""One row of a forest plot: an effect on a scale of relative changes, drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tare.knowledge.claim import Between, Claim, Measured
from tare.knowledge.pool import half_width
from tare.report.figures import signed

WIDTH, HEIGHT, EDGE = 260, 22, 8
_MIDDLE = HEIGHT / 2
_STEPS = (
    -0.99,
    -0.9,
    -0.75,
    -0.5,
    -0.25,
    -0.1,
    -0.05,
    -0.02,
    0.0,
    0.02,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.0,
    4.0,
    9.0,
    99.0,
)
"""Relative changes that an axis may mark."""
_LABEL = 40
"""Pixels that the label of a mark takes; marks are as far apart."""


@dataclass(frozen=True)
class Mark:
    """An effect as drawn: log ratios. `point`: `None` of a range; an open end is `None` there alone."""

    point: float | None
    low: float | None
    high: float | None
    weak: bool


@dataclass(frozen=True)
class Axis:
    """Log ratios of both ends, and what is marked between."""

    low: float
    high: float
    marks: tuple[float, ...]

    def x(self, log_ratio: float) -> float:
        """Where it lies, in pixels; what is beyond an end is at the edge."""
        share = (min(max(log_ratio, self.low), self.high) - self.low) / (self.high - self.low)
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)


def mark_of(claim: Claim) -> Mark | None:
    """`None` of a claim in words. A figure with a standard error has its 95 % interval."""
    effect, weak = claim.effect, claim.source.weak
    if isinstance(effect, Measured):
        if (reach := half_width(effect)) is None:
            return Mark(effect.log_ratio, None, None, weak)
        return Mark(effect.log_ratio, effect.log_ratio - reach, effect.log_ratio + reach, weak)
    if isinstance(effect, Between):
        if effect.absolute:
            largest = max(abs(end) for end in (effect.low, effect.high) if end is not None)
            return Mark(None, -largest, largest, weak)
        return Mark(None, effect.low, effect.high, weak)
    return None


def axis_of(marks: Sequence[Mark]) -> Axis:
    """Wide enough for all of them and a mark of either sign, with marks that do not run into each other."""
    ends = [end for mark in marks for end in (mark.point, mark.low, mark.high) if end is not None]
    low, high = 1.04 * min([*ends, -0.05]), 1.04 * max([*ends, 0.05])
    high = max(high, _room(-low, 1))
    low = min(low, -_room(high, -1))
    axis = Axis(low, high, ())
    chosen: list[float] = [0.0]
    for step in sorted(_STEPS, key=abs, reverse=True):
        at = math.log1p(step)
        inside = _LABEL / 2 < axis.x(at) < WIDTH - _LABEL / 2
        if (
            axis.low < at < axis.high
            and inside
            and all(abs(axis.x(at) - axis.x(each)) >= _LABEL for each in chosen)
        ):
            chosen.append(at)
    return Axis(axis.low, axis.high, tuple(sorted(chosen)))


def _room(longer: float, sign: int) -> float:
    """Return the least length of the side of `sign` that holds one labelled mark beside a side of this length."""
    inside, width = _LABEL / 2 + 1, WIDTH - 2 * EDGE
    for at in sorted(abs(math.log1p(step)) for step in _STEPS if step * sign > 0):
        side = (at + longer * (inside - EDGE) / width) / (1 - (inside - EDGE) / width)
        if at * width >= _LABEL * (side + longer):
            return side
    return longer


def row(mark: Mark, axis: Axis, words: str) -> str:
    """The SVG of one effect. `words`: what it shows, already escaped, for those who do not see it."""
    parts = [f'<line class="zero" x1="{axis.x(0)}" x2="{axis.x(0)}" y1="0" y2="{HEIGHT}"/>']
    if mark.low is not None or mark.high is not None:
        left = axis.x(axis.low if mark.low is None else mark.low)
        right = axis.x(axis.high if mark.high is None else mark.high)
        kind = "range" if mark.point is None else "interval"
        parts.append(f'<line class="{kind}" x1="{left}" x2="{right}" y1="{_MIDDLE}" y2="{_MIDDLE}"/>')
        parts += [
            f'<path class="open" d="M{x} {_MIDDLE - 4}l{tip} 4l{-tip} 4z"/>'
            for end, x, tip in ((mark.low, left, -6), (mark.high, right, 6))
            if end is None
        ]
    if mark.point is not None:
        hollow = " alone" if mark.low is None else ""
        parts.append(f'<circle class="point{hollow}" cx="{axis.x(mark.point)}" cy="{_MIDDLE}" r="4"/>')
    weak = " weak" if mark.weak else ""
    return (
        f'<svg class="forest{weak}" role="img" aria-label="{words}" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
    )


def head(axis: Axis) -> str:
    """The scale above the rows."""
    labels = "".join(
        f'<text x="{axis.x(at)}" y="14" text-anchor="middle">{_percent(at)}</text>' for at in axis.marks
    )
    size = f'width="{WIDTH}" height="18" viewBox="0 0 {WIDTH} 18"'
    return f'<svg class="forest" {size} aria-hidden="true">{labels}</svg>'


def _percent(log_ratio: float) -> str:
    return signed(f"{100 * math.expm1(log_ratio):+.0f} %") if log_ratio else "0 %"
