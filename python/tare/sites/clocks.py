"""Clocks of a host that reports them without starting a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class ClockReading:
    """A host's clocks at one moment, in nanoseconds. `wall_ns`: since the epoch."""

    monotonic_ns: int
    wall_ns: int


@runtime_checkable
class TellsTime(Protocol):
    """A host whose clocks are read without starting a program: in little more than a round trip."""

    def clocks(self) -> ClockReading:
        """Read the wall clock and the monotonic clock of the host."""
        ...
