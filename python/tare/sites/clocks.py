"""A host's clocks, where it reports them without a program being started there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class ClockReading:
    """A host's clocks at one moment, nanoseconds. `wall_ns`: since the epoch."""

    monotonic_ns: int
    wall_ns: int


@runtime_checkable
class TellsTime(Protocol):
    """A host whose clocks are read without a program being started there: in little more than a round trip."""

    def clocks(self) -> ClockReading:
        """Both of them, now."""
        ...
