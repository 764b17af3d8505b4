"""Synchronisation of attempts at the same time and the conducting thread; whoever fails first cancels them."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from tare.deployments import Instance
from tare.errors import RunFailed
from tare.record.load_time import Bounds
from tare.record.swap_halves import Swap
from tare.run.clock import Clock

_SLICE_S = 0.1
INTERRUPTED = "the runs at the same time were interrupted"


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


class Barrier:
    """Barrier for the threads of attempts that share time."""

    def __init__(self, threads: int) -> None:
        self._barrier = threading.Barrier(threads)
        self._lock = threading.Lock()
        self._why: str | None = None
        self.driven = False
        """Whether all attempts are back in the conducting thread; teardown follows, which nothing cancels."""

    def meet(self) -> None:
        """Wait for the other threads. Raises `RunFailed` if the attempts were cancelled."""
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise RunFailed(self.why or INTERRUPTED) from None

    def cancel(self, why: str) -> None:
        """Wake all waiting threads; the first reason counts."""
        with self._lock:
            self._why = self._why or why
        self._barrier.abort()

    @property
    def why(self) -> str | None:
        """Why the attempts were cancelled; `None` while they were not."""
        return self._why


class DuetBarrier(Barrier):
    """Barrier for two threads, with what each must know of the other. Slots are 0 and 1."""

    def __init__(self) -> None:
        super().__init__(2)
        self._under_load: dict[int, ArmUnderLoad] = {}
        self._measured: dict[int, Bounds] = {}
        self.swap: Swap | None = None
        self.over = False
        """Whether one of the clients has ended: too late to swap."""

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
    """A clock whose sleepers wake when the attempts are cancelled, up to the teardown."""

    clock: Clock
    barrier: Barrier

    def wall(self) -> float:
        """Return the underlying clock's wall time."""
        return self.clock.wall()

    def monotonic(self) -> float:
        """Return the underlying clock's monotonic time."""
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep in slices. Raises `RunFailed` when the attempts are cancelled."""
        end = self.clock.monotonic() + seconds
        while True:
            if self.barrier.why is not None and not self.barrier.driven:
                raise RunFailed(self.barrier.why)
            left = end - self.clock.monotonic()
            if left <= 0:
                return
            self.clock.sleep(min(_SLICE_S, left))
