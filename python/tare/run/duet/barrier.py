"""Where the two threads of a duet and the one that conducts them meet; broken off by whoever fails first."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from tare.deployments import Instance
from tare.errors import RunFailed
from tare.run.clock import Clock
from tare.run.usage.driven import Bounds

_SLICE_S = 0.1


@dataclass(frozen=True)
class ArmUnderLoad:
    """An arm under load. `tasks`: all that moves with it.

    `started_s`: when its client's process began (monotonic clock); `warm_up_s`: how long that of the warm-up lived,
    `None` where there was none; `own_warmup_s`: for how long the client's own process warms up before it measures.
    """

    tasks: tuple[Instance, ...]
    moves_to: str
    """The CPU list of the second half."""
    started_s: float
    warm_up_s: float | None = None
    own_warmup_s: float = 0.0


@dataclass(frozen=True)
class Swap:
    """When the CPU sets were swapped, on the monotonic clock."""

    began_s: float
    ended_s: float


class DuetBarrier:
    """Barriers of two, and what each must know of the other. Slots are 0 and 1."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)
        self._lock = threading.Lock()
        self._why: str | None = None
        self._playing: dict[int, ArmUnderLoad] = {}
        self._drove: dict[int, Bounds] = {}
        self.swap: Swap | None = None
        self.over = False
        """One of the clients has ended: too late to swap."""
        self.dissolved = False
        """Both are back in the thread that conducts; what follows is tearing down, which nothing breaks off."""

    def meet(self) -> None:
        """Wait until the other is here too. Raises `RunFailed` where there is nobody to wait for any more."""
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise RunFailed(self.why or "the duet was interrupted") from None

    def break_off(self, why: str) -> None:
        """Nobody waits any longer; the first reason stands."""
        with self._lock:
            self._why = self._why or why
        self._barrier.abort()

    @property
    def why(self) -> str | None:
        """Why it was broken off, `None` while it was not."""
        return self._why

    def began(self, slot: int, playing: ArmUnderLoad) -> None:
        """The client of a slot is under way."""
        self._playing[slot] = playing

    def drove(self, slot: int, bounds: Bounds) -> None:
        """Where the measurement of a slot's client lies."""
        self._drove[slot] = bounds

    @property
    def playing(self) -> tuple[ArmUnderLoad, ArmUnderLoad] | None:
        """Both clients, `None` until both are under way."""
        return (self._playing[0], self._playing[1]) if len(self._playing) == 2 else None

    @property
    def both_drove(self) -> tuple[Bounds, Bounds] | None:
        """Where both measurements lie; `None` until both are known."""
        return (self._drove[0], self._drove[1]) if len(self._drove) == 2 else None


@dataclass(frozen=True)
class BreakableClock:
    """A clock on which nobody sleeps on after the duet was interrupted, until it is dissolved."""

    clock: Clock
    meeting: DuetBarrier

    def wall(self) -> float:
        """As the clock beneath."""
        return self.clock.wall()

    def monotonic(self) -> float:
        """As the clock beneath."""
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """In slices; raises `RunFailed` when the duet is broken off."""
        end = self.clock.monotonic() + seconds
        while True:
            if self.meeting.why is not None and not self.meeting.dissolved:
                raise RunFailed(self.meeting.why)
            left = end - self.clock.monotonic()
            if left <= 0:
                return
            self.clock.sleep(min(_SLICE_S, left))
