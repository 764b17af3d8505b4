"""Where what happened in a run is drawn: work of the server behind the disk's lines, all else as a mark above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tare.analyze.timelines.marks import Mark
from tare.analyze.timelines.series import WRITTEN


@dataclass(frozen=True)
class Band:
    """From when to when, in seconds since measuring began."""

    began: float
    ended: float


def bands_of(marks: Sequence[Mark], panel: str, reach: tuple[float, float]) -> tuple[Band, ...]:
    """Those of a panel, cut to what it shows."""
    if panel != WRITTEN:
        return ()
    return tuple(
        Band(max(mark.second, reach[0]), min(mark.until, reach[1]))
        for mark in marks
        if mark.work and mark.until is not None and mark.until >= reach[0] and mark.second <= reach[1]
    )


def hangs(mark: Mark, panel: str) -> bool:
    """Whether it is a mark in that panel; work of which only the end is known is one of the disk's alone."""
    return not mark.work or (mark.until is None and panel == WRITTEN)
