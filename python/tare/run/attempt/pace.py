"""When each phase began, and the pace of an attempt: alone, or in step with another attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tare.deployments import Instance
from tare.record.duet import DuetTimes
from tare.record.load_time import LoadTime
from tare.record.run_record import Phase, PhaseTime
from tare.run.attempt.directory import WorkDirectory
from tare.run.clock import Clock
from tare.workloads import ClientCommand, Files, Parameters, Target, Window, Workload

Announce = Callable[[Phase, float | None], None]
"""Called as each phase begins, with its expected seconds where known."""


class Stopwatch:
    """Times the phases of one attempt."""

    def __init__(self, clock: Clock, announce: Announce) -> None:
        self._clock = clock
        self._announce = announce
        self._times: list[PhaseTime] = []
        self.current: Phase | None = None

    @contextmanager
    def phase(self, phase: Phase, expected_s: float | None = None) -> Iterator[None]:
        """Time one phase, however it ends. `current` stays at the phase that failed."""
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
    """Interface by which an attempt reports its progress and waits for another attempt."""

    @property
    def moved_to(self) -> str | None:
        """CPU list of SUT and client at the end; `None` if they were not moved."""
        ...

    def meet(self) -> None:
        """Wait until the next phase may begin. Raises `RunFailed` if it never will."""
        ...

    def measure(
        self, workload: Workload[Any], parameters: Parameters, target: Target | Files, run_dir: str
    ) -> ClientCommand:
        """Return the command of the measure phase."""
        ...

    def warming_up(self, workdir: WorkDirectory, watch: Callable[[], bool]) -> None:
        """Report that the client of the measure phase has started and warms up by itself first.

        `watch` looks at all programs, and returns whether the client lives.
        """
        ...

    def warmed_up(self, client: Instance) -> None:
        """Report that the client of the warm-up has just ended."""
        ...

    def client_started(self, servers: tuple[Instance, ...], client: Instance, own_warmup_s: float) -> None:
        """Report that the client of the measure phase has started. Without servers, the client is itself the SUT.

        `own_warmup_s`: seconds from its start that the client warms up by itself before it measures.
        """
        ...

    def client_ended(self) -> None:
        """Report that the client of the measure phase has ended."""
        ...

    def share(self, windows: Sequence[Window], load: LoadTime) -> DuetTimes | None:
        """Return the record's entry on the shared run; `None` for a run alone."""
        ...


@dataclass(frozen=True)
class Alone:
    """Pace of an attempt that runs alone."""

    moved_to: str | None = None

    def meet(self) -> None:
        """Return at once."""

    def measure(
        self, workload: Workload[Any], parameters: Parameters, target: Target | Files, run_dir: str
    ) -> ClientCommand:
        """Return the workload's own."""
        command: ClientCommand = workload.measure(parameters, target, run_dir)
        return command

    def warming_up(self, workdir: WorkDirectory, watch: Callable[[], bool]) -> None:
        """Do nothing."""

    def warmed_up(self, client: Instance) -> None:
        """Do nothing."""

    def client_started(self, servers: tuple[Instance, ...], client: Instance, own_warmup_s: float) -> None:
        """Do nothing."""

    def client_ended(self) -> None:
        """Do nothing."""

    def share(self, windows: Sequence[Window], load: LoadTime) -> DuetTimes | None:  # noqa: ARG002 - the contract's
        """Return `None`: nothing was shared."""
        return None


ALONE = Alone()
