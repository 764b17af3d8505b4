"""Monitors: programs that watch SUT, client, engine and host while a run lasts.

A monitor *describes* its programs and reads what they left; `run/` starts and stops them. All of one kind the same
shape, so that a study can have any of them in a level and what each costs is counted alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tare.sites import Host

if TYPE_CHECKING:
    import polars as pl


Options = Mapping[str, str | int | float | bool]
"""What a study sets that only one monitor knows."""
SUT = "sut"
"""Name of the server, or of the program that is measured by itself, in traces."""
OF_SUT = r"^sut(-\d+)?$"
"""Its name, or those of its nodes: `sut-1`, `sut-2`, …"""
ONE_CONTAINER = frozenset({"cadvisor", "docker-stats", "podman-stats"})
"""Monitors that look at one container or control group only."""


@dataclass(frozen=True)
class WatchedProcess:
    """One thing to look at.

    `name`: `sut` (of a cluster `sut-1`, …), `client`, `warm-up`, `proxy`, `shim`, `storage`, `dockerd`,
    `containerd`, `tare`.
    `own_cgroup`: it stands in a control group of its own, not in a root one that holds half the machine.
    `own_network`: its network namespace is not the host's. `tree`: its descendants belong to it.
    """

    name: str
    pid: int
    own_cgroup: bool = False
    own_network: bool = False
    tree: bool = False
    container_id: str | None = None


@dataclass(frozen=True)
class MonitorContext:
    """What a monitor is asked to look at, and from where.

    `directory` is its own on the host, there while the run lasts; paths in programs are below it or absolute.
    `most_s`: nobody will stop it later than that, so a program that is able to should end by itself then.
    `options`: of the study, checked by the monitor.
    """

    host: Host
    directory: str
    interval_s: float
    most_s: float
    watched: tuple[WatchedProcess, ...]
    options: Options = field(default_factory=dict)

    @property
    def sut(self) -> WatchedProcess | None:
        """The server, `None` where the program that is measured is yet to come."""
        return next((each for each in self.watched if each.name == SUT), None)


@dataclass(frozen=True)
class Program:
    """One process of a monitor. `files`: name → content, written to its directory first.

    `started`: a file that is there once it is at work. `stop`: the signal by which its process group ends and
    writes all it has; what it then leaves must tell whether it is whole, as nobody sees its exit code.
    `counts_itself`: its own CPU time is the monitor's, not only that of its children.
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
    """How a running monitor learns of new processes: write this file, then send this signal."""

    file: str
    content: str
    signal: str


@dataclass(frozen=True)
class Reading:
    """What a monitor saw. `table`: with the columns of `samples.columns`; `None` where it keeps tables of its own.

    `samples`: readings in time. `values`: plain values for the record, by names that its page explains.
    """

    samples: int
    table: pl.DataFrame | None
    values: Mapping[str, Any]


class Monitor(Protocol):
    """A monitor, described. No method starts a process that stays."""

    daemons: ClassVar[frozenset[str]]
    """Names of `Watched` processes that work for it; their CPU time is shown beside its own."""
    reports_cost: ClassVar[bool]
    """Whether it reports its own CPU time, as `cpu_s`."""

    def why_unavailable(self, host: Host, interval_s: float, options: Options) -> str | None:
        """Why this host cannot run it, and what to do about it; `None` if it can."""
        ...

    def programs(self, scene: MonitorContext) -> tuple[Program, ...]:
        """What to start, in order."""
        ...

    def update_targets(self, scene: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:
        """How to add the processes that came after its start; `None` if it need not know them."""
        ...

    def final_commands(self, scene: MonitorContext) -> Mapping[str, tuple[str, ...]]:
        """Commands to run before it is stopped, by the file in its directory that takes their output."""
        ...

    def read(self, scene: MonitorContext, directory: Path) -> Reading:
        """Read what it left (`directory`: brought home). Raises `RunFailed` on any sign that it is not whole."""
        ...
