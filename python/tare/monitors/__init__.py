"""Monitors: programs that watch SUT, client, engine and host while a run lasts.

A monitor *describes* its programs and reads what they left; `run/` starts and stops them. All monitors have the
same shape, so that a study can use any of them in a level and the cost of each is measured in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tare.requirements import HostPlan, Requirement
from tare.sites import Host

if TYPE_CHECKING:
    import polars as pl


Options = Mapping[str, str | int | float | bool]
"""Options in a study that only one monitor understands."""
SUT = "sut"
"""Name in traces of the server, or of a program that is measured by itself."""
OF_SUT = r"^sut(-\d+)?$"
"""Matches the server's name, or those of its nodes: `sut-1`, `sut-2`, …"""
ONE_CONTAINER = frozenset({"cadvisor", "docker-stats", "podman-stats"})
"""Monitors that watch only one container or control group."""


@dataclass(frozen=True)
class WatchedProcess:
    """One process to watch.

    `name`: `sut` (of a cluster `sut-1`, …), `client`, `warm-up`, `proxy`, `shim`, `storage`, `dockerd`,
    `containerd`, `tare`. `own_cgroup`: it is in a control group of its own, not in a root group with most of the
    machine. `own_network`: its network namespace is not the host's. `tree`: its descendants belong to it.
    """

    name: str
    pid: int
    own_cgroup: bool = False
    own_network: bool = False
    tree: bool = False
    container_id: str | None = None


@dataclass(frozen=True)
class MonitorContext:
    """What a monitor must watch, and its surroundings.

    `directory`: the monitor's own directory on the host, which exists while the run lasts; paths in programs are
    below it or absolute. `most_s`: nobody stops the monitor later than that, so a program that can should end by
    itself then. `options`: from the study, checked by the monitor.
    """

    host: Host
    directory: str
    interval_s: float
    most_s: float
    watched: tuple[WatchedProcess, ...]
    options: Options = field(default_factory=dict)

    @property
    def sut(self) -> WatchedProcess | None:
        """The server; `None` if the measured program has not started yet."""
        return next((each for each in self.watched if each.name == SUT), None)


@dataclass(frozen=True)
class Program:
    """One process of a monitor.

    `files`: name → content, written to the monitor's directory first. `started`: a file that exists once the
    program works. `stop`: the signal on which its process group ends and writes everything; as nobody sees its exit
    code, its output must show whether it is complete. `counts_itself`: the program's own CPU time is the monitor's,
    not only that of its children.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    started: str | None = None
    stop: str = "TERM"
    counts_itself: bool = True


@dataclass(frozen=True)
class TargetUpdate:
    """How to tell a running monitor about new processes: write this file, then send this signal."""

    file: str
    content: str
    signal: str


@dataclass(frozen=True)
class Reading:
    """What a monitor measured. `table`: has the columns of `samples.columns`; `None` if it keeps tables of its own.

    `samples`: number of readings over time. `values`: plain values for the record, under names that the monitor's
    page explains.
    """

    samples: int
    table: pl.DataFrame | None
    values: Mapping[str, Any]


class Monitor(Protocol):
    """Describes a monitor. No method starts a process that stays."""

    daemons: ClassVar[frozenset[str]]
    """Names of watched processes that work for the monitor; their CPU time is shown beside its own."""
    reports_cost: ClassVar[bool]
    """Whether the monitor reports its own CPU time, as `cpu_s`."""
    needs: ClassVar[tuple[Requirement, ...]]
    """What the host that it watches must have."""

    def settings_fault(self, interval_s: float, options: Options) -> str | None:
        """What is wrong with a study's settings of the monitor, with a way forward; `None` if nothing is."""
        ...

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """Programs to start, in order."""
        ...

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:
        """How to add processes that came after the monitor's start; `None` if it need not know them."""
        ...

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:
        """Commands to run before the monitor is stopped, by the file in its directory for their output."""
        ...

    def read(self, context: MonitorContext, directory: Path) -> Reading:
        """Read the monitor's output (`directory`: its local copy).

        Raises `RunFailed` on any sign that it is incomplete.
        """
        ...


def why_unavailable(monitor: Monitor, host: Host, interval_s: float, options: Options) -> str | None:
    """Why this host cannot run the monitor with these settings, with a way forward; `None` if it can."""
    there = HostPlan(host, options=options)
    reasons = (each.why_not(there) for each in monitor.needs)
    return monitor.settings_fault(interval_s, options) or next((why for why in reasons if why is not None), None)
