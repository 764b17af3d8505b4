"""Injected time: the wall clock tells when, the monotonic clock how long; only the latter sets deadlines."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Clocks, in seconds. The wall clock may step at any moment, so nothing is computed from its differences."""

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment (CLOCK_MONOTONIC)."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait this many seconds."""
        ...


@dataclass(frozen=True)
class SystemClock:
    """The machine's own clocks."""

    def wall(self) -> float:
        """time(2)."""
        return time.time()

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep at least this long."""
        time.sleep(seconds)


class Deadline:
    """A moment on the monotonic clock."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self._end - self._clock.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return self.left_s == 0.0
