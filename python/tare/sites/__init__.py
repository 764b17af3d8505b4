"""Hosts: the only door through which tare touches a machine.

Deployments, databases, workloads and monitors never call `subprocess` and never open a machine's files
themselves; they ask a `Host`. That is what lets an SSH host take the local one's place, and a fake one
serve the unit tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Completed:
    """A program that has ended: exit code (negative: the signal), and what it printed."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode(errors="replace")


@dataclass(frozen=True)
class Process:
    """A process of ours, named so that a recycled pid is never mistaken for it.

    `started_ticks` is field 22 of /proc/PID/stat (proc_pid_stat(5)), `boot_id` the kernel's
    /proc/sys/kernel/random/boot_id.
    """

    pid: int
    started_ticks: int
    boot_id: str


@dataclass(frozen=True)
class Output:
    """Where a started program's output goes: absolute paths on the host."""

    stdout: str
    stderr: str


class Host(Protocol):
    """One machine. Every call ends within its time limit or raises `TimedOut`."""

    name: str

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a program to its end. `check`: a non-zero exit raises `RunFailed` with its last line."""
        ...

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        """Start a program in a session of its own and return at once; its output goes to files.

        `announce` gets the process before the program begins. A program whose tare is killed before that is
        done, or of which it raises, never begins: what is left out of the ledger leaves nothing behind.
        """
        ...

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Write a file (or the bytes given) to the absolute path `target`; pseudo-files are written in place."""
        ...

    def get(self, source: str, target: Path) -> None:
        """Copy the host's file or directory `source` to `target` on the machine tare runs on.

        A link, a pipe or a device in its place is refused: programs that run may write where their output is read.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """Content of a file, `None` where there is none; pseudo-files of /proc and /sys included."""
        ...


@dataclass(frozen=True)
class Site:
    """The machines one block runs on; one host may play both parts."""

    sut: Host
    client: Host
    labels: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[Host, ...] = ()
    """One host a node of a SUT that is a cluster, `sut` the first; empty where all of it stands on `sut`."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Name of a host → the address by which the others reach it on the measured network."""
    container_addresses: Mapping[str, str] = field(default_factory=dict)
    """Name of a host → an address of that network, with its prefix length, for a container of its own there."""

    @property
    def sut_hosts(self) -> tuple[Host, ...]:
        """The hosts of the SUT: one a node of a cluster, else the one on which all of it stands."""
        return self.nodes or (self.sut,)

    def host_of(self, number: int) -> Host:
        """The host of a SUT's node, counted from 1."""
        return self.nodes[number - 1] if self.nodes else self.sut

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Every host once, those of the SUT first."""
        return tuple({host.name: host for host in (self.sut, *self.nodes, self.client)}.values())
