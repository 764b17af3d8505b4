"""One side of a duet: the pace at which its attempt goes, and what its record says of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tare.deployments import Instance
from tare.errors import RunFailed
from tare.run.duet.barrier import ArmUnderLoad, DuetBarrier
from tare.run.duet.placement import DuetSlot
from tare.run.duet.swap import both_drove, split_at_swap
from tare.run.machine import Machine
from tare.run.record import to_tree
from tare.run.usage.driven import Bounds, Driven
from tare.sites.process import TICKS_PER_S
from tare.workloads import Window


@dataclass
class Part:
    """`number`: 0 for the run that is first in its block, else 1."""

    meeting: DuetBarrier
    number: int
    slot: DuetSlot
    machine: Machine
    _playing: ArmUnderLoad | None = None
    _warm_up_s: float | None = None

    @property
    def moved_to(self) -> str | None:
        """The CPU set on which it ends."""
        return self.slot.cpus[1]

    def meet(self) -> None:
        """When the other is here too."""
        self.meeting.meet()

    def warmed_up(self, client: Instance) -> None:
        """Noted: a generator takes about as long to begin when it is measured."""
        self._warm_up_s = self.machine.clock.monotonic() - started_s(self.machine, client)

    def began(self, servers: tuple[Instance, ...], client: Instance, own_warmup_s: float) -> None:
        """Noted for the one who swaps the CPU sets."""
        began_s = started_s(self.machine, client)
        self._playing = ArmUnderLoad((client, *servers), self.slot.cpus[1], began_s, self._warm_up_s, own_warmup_s)
        self.meeting.began(self.number, self._playing)

    def ended(self) -> None:
        """Noted, and waited until the other has ended too."""
        self.meeting.over = True
        self.meeting.meet()

    def share(self, windows: Sequence[Window], drove: Driven) -> Mapping[str, Any]:
        """The halves, once the other's measurement is whole too."""
        playing = self._playing
        if playing is not None:
            self.meeting.drove(self.number, Bounds.of(drove, playing.started_s))
        self.meeting.meet()
        swap, both = self.meeting.swap, self.meeting.both_drove
        if swap is None or both is None or playing is None:
            raise RunFailed("the measure phase was over before the CPU sets were swapped")
        own, both_s = both[self.number], both_drove(both)
        by_half = split_at_swap(windows, own, both_s, swap)
        return {
            **self.slot.tree,
            "started_s": playing.started_s,
            "began_by": drove.by,
            "began_from_s": own.earliest_s,
            "began_until_s": own.latest_s,
            "both_from_s": both_s[0],
            "swap_began_s": swap.began_s,
            "swap_ended_s": swap.ended_s,
            "both_until_s": both_s[1],
            "windows_dropped": len(windows) - sum(half.windows for half in by_half),
            "halves": [to_tree(half) for half in by_half],
        }


def started_s(machine: Machine, client: Instance) -> float:
    """When a client's process began, on the monotonic clock; the kernel gives it in steps of 10 ms."""
    now, uptime = machine.clock.monotonic(), machine.site.client.read("/proc/uptime")
    if uptime is None or not client.process.started_ticks:
        return now
    return min(now, now - float(uptime.split()[0]) + client.process.started_ticks / TICKS_PER_S)
