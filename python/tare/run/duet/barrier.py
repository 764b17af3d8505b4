"""Synchronisation of the two threads of a duet and the conducting thread; whoever fails first cancels it."""

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
    """An arm under load. `tasks`: everything that moves between CPU sets with it.

    `started_s`: start of its client's process (monotonic clock); `warm_up_s`: lifetime of the warm-up's client,
    `None` without one; `own_warmup_s`: seconds that the client's own process warms up before it measures.
    """

    tasks: tuple[Instance, ...]
    moves_to: str
    """CPU list of the second half."""
    started_s: float
    warm_up_s: float | None = None
    own_warmup_s: float = 0.0


@dataclass(frozen=True)
class Swap:
    """Start and end of the swap of the CPU sets, on the monotonic clock."""

    began_s: float
    ended_s: float


class DuetBarrier:
    """Barrier for two threads, with what each must know of the other. Slots are 0 and 1."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)
        self._lock = threading.Lock()
        self._why: str | None = None
        self._under_load: dict[int, ArmUnderLoad] = {}
        self._measured: dict[int, Bounds] = {}
        self.swap: Swap | None = None
        self.over = False
        """Whether one of the clients has ended: too late to swap."""
        self.driven = False
        """Whether both attempts are back in the conducting thread; teardown follows, which nothing cancels."""

    def meet(self) -> None:
        """Wait for the other thread. Raises `RunFailed` if the duet was cancelled."""
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise RunFailed(self.why or "the duet was interrupted") from None

    def cancel(self, why: str) -> None:
        """Wake all waiting threads; the first reason counts."""
        with self._lock:
            self._why = self._why or why
        self._barrier.abort()

    @property
    def why(self) -> str | None:
        """Why the duet was cancelled; `None` while it was not."""
        return self._why

    def client_started(self, slot: int, under_load: ArmUnderLoad) -> None:
        """Record that the client of a slot has started."""
        self._under_load[slot] = under_load

    def measured(self, slot: int, bounds: Bounds) -> None:
        """Record the time bounds of the measurement by a slot's client."""
        self._measured[slot] = bounds

    @property
    def under_load(self) -> tuple[ArmUnderLoad, ArmUnderLoad] | None:
        """Both arms under load; `None` until both clients have started."""
        return (self._under_load[0], self._under_load[1]) if len(self._under_load) == 2 else None

    @property
    def both_measured(self) -> tuple[Bounds, Bounds] | None:
        """Time bounds of both measurements; `None` until both are known."""
        return (self._measured[0], self._measured[1]) if len(self._measured) == 2 else None


@dataclass(frozen=True)
class BreakableClock:
    """A clock whose sleepers wake when the duet is cancelled, up to the teardown."""

    clock: Clock
    barrier: DuetBarrier

    def wall(self) -> float:
        """Return the underlying clock's wall time."""
        return self.clock.wall()

    def monotonic(self) -> float:
        """Return the underlying clock's monotonic time."""
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep in slices. Raises `RunFailed` when the duet is cancelled."""
        end = self.clock.monotonic() + seconds
        while True:
            if self.barrier.why is not None and not self.barrier.driven:
                raise RunFailed(self.barrier.why)
            left = end - self.clock.monotonic()
            if left <= 0:
                return
            self.clock.sleep(min(_SLICE_S, left))
