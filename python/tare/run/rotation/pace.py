"""Pace of an attempt whose client takes turns with those of other attempts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tare.deployments import Instance
from tare.errors import RunFailed, TimedOut
from tare.record.duet import DuetTimes
from tare.record.load_time import LoadTime
from tare.run.attempt.directory import WorkDirectory
from tare.run.clock import Clock, Deadline
from tare.run.duet.barrier import Barrier, BreakableClock
from tare.run.rotation.schedule import Schedule
from tare.workloads import CONNECTED_FILE, TURNS_FILE, ClientCommand, Files, Parameters, Target, Window, Workload
from tare.workloads.turns import TurnTaker

_LEAD_S = 0.5
"""From the schedule to the first turn: clients read the file, and the threads of tare get out of the way."""
_CONNECT_S = 60.0
_POLL_S = 0.02
_SELDOM_S = 0.5
"""How often an attempt looks at its programs while turns are taken: each look takes CPU time."""
_END_S = 60.0


class Meeting(Barrier):
    """Barrier of a generation's threads. `base_ns`: start of the first turn, once all clients are connected."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.base_ns: int | None = None


@dataclass(frozen=True)
class SeldomClock:
    """A clock whose sleepers sleep at least `_SELDOM_S` once turns are taken, until all attempts are back."""

    clock: BreakableClock
    meeting: Meeting

    def wall(self) -> float:
        """Return the underlying clock's wall time."""
        return self.clock.wall()

    def monotonic(self) -> float:
        """Return the underlying clock's monotonic time."""
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep, longer while turns are taken."""
        seldom = self.meeting.base_ns is not None and not self.meeting.driven
        self.clock.sleep(max(seconds, _SELDOM_S) if seldom else seconds)


@dataclass(frozen=True)
class RotationPace:
    """Pace of one attempt of a generation. `first`: whether it starts the turns."""

    meeting: Meeting
    schedule: Schedule
    arm: str
    taker: TurnTaker
    clock: Clock
    first: bool
    moved_to: str | None = None

    def meet(self) -> None:
        """Wait for the other attempts."""
        self.meeting.meet()

    def measure(
        self,
        workload: Workload[Any],  # noqa: ARG002 - the contract's
        parameters: Parameters,
        target: Target | Files,
        run_dir: str,
    ) -> ClientCommand:
        """Return the command that takes turns, with the length of all turns."""
        assert isinstance(target, Target)  # noqa: S101 - the study's rules refuse programs without a server
        command = self.taker.measure(parameters, target, run_dir)
        whole_s = self.schedule.seconds + _LEAD_S + _END_S
        return replace(command, own_warmup_s=self.schedule.warm_up_s, timeout_s=whole_s)

    def warming_up(self, workdir: WorkDirectory, watch: Callable[[], bool]) -> None:
        """Wait until the clients of all arms are connected, then give this one its turns."""
        deadline, host, stderr = Deadline(self.clock, _CONNECT_S), workdir.host, workdir.output("measure").stderr
        while host.read(f"{workdir.path}/measure/{CONNECTED_FILE}") is None:
            if not watch():
                words = (host.read(stderr) or b"").decode(errors="replace").strip() or "it said nothing"
                raise RunFailed(f"the client of {self.arm} ended before its first turn: {words}")
            if deadline.passed:
                raise TimedOut(f"the client of {self.arm} was not connected within {_CONNECT_S:g} s")
            self.clock.sleep(_POLL_S)
        self.meeting.meet()
        if self.first:
            self.meeting.base_ns = round((self.clock.monotonic() + _LEAD_S) * 1e9)
        self.meeting.meet()
        assert self.meeting.base_ns is not None  # noqa: S101 - set between the two meetings
        host.put(self.schedule.file_of(self.arm, self.meeting.base_ns), f"{workdir.path}/measure/{TURNS_FILE}")

    def warmed_up(self, client: Instance) -> None:
        """Do nothing."""

    def client_started(self, servers: tuple[Instance, ...], client: Instance, own_warmup_s: float) -> None:
        """Do nothing."""

    def client_ended(self) -> None:
        """Wait for the other clients, so that none is removed while another still takes its turn."""
        self.meeting.meet()

    def share(self, windows: Sequence[Window], load: LoadTime) -> DuetTimes | None:  # noqa: ARG002 - the contract's
        """Return `None`: only a duet has such an entry."""
        return None
