"""When each phase began, and at whose pace an attempt goes through its phases: its own, or another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tare.deployments import Instance
from tare.run.clock import Clock
from tare.run.record import Phase, PhaseTime
from tare.run.usage.driven import Driven
from tare.workloads import Window

Announce = Callable[[Phase, float | None], None]
"""Called as each phase begins, with the seconds it should take where that is known."""


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


class Pace(Protocol):
    """Where an attempt reports how far it is, and waits for another."""

    @property
    def moved_to(self) -> str | None:
        """The CPU list on which SUT and client stand at the end, `None` where they were not moved."""
        ...

    def meet(self) -> None:
        """The next phase may begin. Raises `RunFailed` where it never will."""
        ...

    def warmed_up(self, client: Instance) -> None:
        """The client of the warm-up has ended just now."""
        ...

    def began(self, servers: tuple[Instance, ...], client: Instance, own_warmup_s: float) -> None:
        """The client of the measure phase was started; without servers it is itself the SUT.

        `own_warmup_s`: for how long it warms up by itself before it measures, counted from its start.
        """
        ...

    def ended(self) -> None:
        """It has ended."""
        ...

    def share(self, windows: Sequence[Window], drove: Driven) -> Mapping[str, Any] | None:
        """What the record is to say of having run with another; `None` for a run alone."""
        ...


@dataclass(frozen=True)
class Alone:
    """Nobody to wait for."""

    moved_to: None = None

    def meet(self) -> None:
        """At once."""

    def warmed_up(self, client: Instance) -> None:
        """Nobody listens."""

    def began(self, servers: tuple[Instance, ...], client: Instance, own_warmup_s: float) -> None:
        """Nobody listens."""

    def ended(self) -> None:
        """Nobody listens."""

    def share(self, windows: Sequence[Window], drove: Driven) -> None:
        """Nothing."""


ALONE = Alone()
