"""When each phase began and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tare.run.clock import Clock
from tare.run.record import Phase, PhaseTime

Announce = Callable[[Phase, float | None], None]
"""Told of each phase as it begins, with the seconds it should take where that is known."""


class Stopwatch:
    """Times the phases of one attempt."""

    def __init__(self, clock: Clock, announce: Announce) -> None:
        self._clock = clock
        self._announce = announce
        self._times: list[PhaseTime] = []
        self.current: Phase | None = None

    @contextmanager
    def phase(self, phase: Phase, expected_s: float | None = None) -> Iterator[None]:
        """One phase; its time is kept however it ends. `current` stays at the phase that failed."""
        self.current = phase
        self._announce(phase, expected_s)
        began_at, began = self._clock.wall(), self._clock.monotonic()
        try:
            yield
        finally:
            seconds = self._clock.monotonic() - began
            self._times.append(PhaseTime(phase=phase, began_at=began_at, seconds=seconds, monotonic_s=began))

    @property
    def times(self) -> tuple[PhaseTime, ...]:
        """The phases so far, in order."""
        return tuple(self._times)
