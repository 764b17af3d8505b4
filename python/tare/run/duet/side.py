"""One side of a duet: the pace of its attempt, and its record's entry on the other side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tare.deployments import Instance
from tare.errors import RunFailed
from tare.record.duet import DuetTimes
from tare.record.load_time import Bounds, LoadTime
from tare.record.swap_halves import overlap_s, split_at_swap
from tare.run.attempt.directory import WorkDirectory
from tare.run.duet.barrier import ArmUnderLoad, DuetBarrier
from tare.run.duet.placement import DuetSlot
from tare.run.machine import Machine
from tare.sites.process import TICKS_PER_S
from tare.workloads import ClientCommand, Files, Parameters, Target, Window, Workload


@dataclass
class DuetPace:
    """Pace of one attempt of a duet. `number`: 0 for the first run of the block, else 1."""

    barrier: DuetBarrier
    number: int
    slot: DuetSlot
    machine: Machine
    _under_load: ArmUnderLoad | None = None
    _warm_up_s: float | None = None

    @property
    def moved_to(self) -> str | None:
        """CPU set of the second half."""
        return self.slot.cpus[1]

    def meet(self) -> None:
        """Wait for the other attempt."""
        self.barrier.meet()

    def measure(
        self, workload: Workload[Any], parameters: Parameters, target: Target | Files, run_dir: str
    ) -> ClientCommand:
        """Return the workload's own."""
        command: ClientCommand = workload.measure(parameters, target, run_dir)
        return command

    def warming_up(self, workdir: WorkDirectory, watch: Callable[[], bool]) -> None:
        """Do nothing."""

    def warmed_up(self, client: Instance) -> None:
        """Record how long the warm-up's client lived: a generator takes about as long to start when it measures."""
        self._warm_up_s = self.machine.clock.monotonic() - started_s(self.machine, client)

    def client_started(self, servers: tuple[Instance, ...], client: Instance, own_warmup_s: float) -> None:
        """Record the tasks and times that the swap of the CPU sets needs."""
        began_s = started_s(self.machine, client)
        self._under_load = ArmUnderLoad(
            (client, *servers), self.slot.cpus[1], began_s, self._warm_up_s, own_warmup_s
        )
        self.barrier.client_started(self.number, self._under_load)

    def client_ended(self) -> None:
        """Record the end and wait for the other client to end."""
        self.barrier.over = True
        self.barrier.meet()

    def share(self, windows: Sequence[Window], load: LoadTime) -> DuetTimes:
        """Return the two halves, once the other side's measurement is complete too."""
        under_load = self._under_load
        if under_load is not None:
            self.barrier.measured(self.number, Bounds.of(load, under_load.started_s))
        self.barrier.meet()
        swap, both = self.barrier.swap, self.barrier.both_measured
        if swap is None or both is None or under_load is None:
            raise RunFailed("the measure phase was over before the CPU sets were swapped")
        own, both_s = both[self.number], overlap_s(both)
        by_half = split_at_swap(windows, own, both_s, swap)
        return replace(
            self.slot.times,
            started_s=under_load.started_s,
            began_by=load.by,
            began_from_s=own.earliest_s,
            began_until_s=own.latest_s,
            both_from_s=both_s[0],
            swap_began_s=swap.began_s,
            swap_ended_s=swap.ended_s,
            both_until_s=both_s[1],
            windows_dropped=len(windows) - sum(half.windows for half in by_half),
            halves=by_half,
        )


def started_s(machine: Machine, client: Instance) -> float:
    """Start of a client's process on the monotonic clock; the kernel counts it in steps of 10 ms."""
    now, uptime = machine.clock.monotonic(), machine.site.client.read("/proc/uptime")
    if uptime is None or not client.process.started_ticks:
        return now
    return min(now, now - float(uptime.split()[0]) + client.process.started_ticks / TICKS_PER_S)
