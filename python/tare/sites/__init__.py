"""Hosts: the only interface through which tare touches a machine.

Deployments, databases, workloads and monitors never call `subprocess` and never open a machine's files themselves;
they ask a `Host`. Therefore an SSH host can replace the local one, and a fake host serves the unit tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tare.sites.abilities import ClockReading, NetworkProbe

_CALL_S = 10.0


@dataclass(frozen=True)
class Completed:
    """A program that has ended: its exit code (negative: the signal) and output."""

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
    """A process, identified so that a reused pid is never mistaken for it."""

    pid: int
    """Its number on its host."""
    started_ticks: int
    """When it began: field 22 of /proc/PID/stat (proc_pid_stat(5))."""
    boot_id: str
    """The kernel's /proc/sys/kernel/random/boot_id."""


@dataclass(frozen=True)
class Output:
    """Files for a started program's output: absolute paths on the host."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class NewFile:
    """Arguments of `Host.put`. `path`: absolute, on the host."""

    path: str
    content: bytes
    mode: int = 0o644


class Host(Protocol):
    """One machine. Every call ends within its time limit or raises `TimedOut`.

    A kind of host derives from this class and implements the five methods without a body. The others have defaults,
    for a host that can do no more.
    """

    name: str
    is_remote: bool = False
    """Whether it is reached over SSH."""
    by_sidecar: bool = False
    """Whether the user is not root, and a container of the engine reaches what belongs to others."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a program to its end.

        `check`: a non-zero exit code raises `RunFailed` with the last line of output.
        """
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

        `announce` gets the process before the program begins. If `announce` raises, or tare is killed before it
        returns, the program never begins: a process that is not in the ledger leaves nothing behind.
        """
        ...

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Write a file (or bytes) to the absolute path `target`; pseudo-files are written in place."""
        ...

    def get(self, source: str, target: Path) -> None:
        """Copy the host's file or directory `source` to `target` on the machine that tare runs on.

        Links, pipes and devices are refused: running programs may be able to write where their output is read.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """Content of a file, also of a pseudo-file of /proc or /sys; `None` if it does not exist.

        What is gone by the time of the read does not exist either: a process, a control group, a device.
        """
        ...

    def put_all(self, files: Sequence[NewFile]) -> None:
        """Write each file as `put` does, in one round trip if the host supports it, and raise the first failure.

        They must not depend on each other, as the order is not defined.
        """
        for file in files:
            self.put(file.content, file.path, mode=file.mode)

    def read_all(self, paths: Sequence[str]) -> Mapping[str, bytes | None] | None:  # noqa: ARG002 - a default
        """Read files as `read` does, in one round trip; `None` if the host does not support it.

        A path that is missing in the result must be read alone: too long, or unreadable.
        """
        return None

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        """Path of each link → its target, for the links among `places` and those in the directories among them.

        What is missing, or goes away meanwhile, is left out.
        """
        argv = ["find", *places, "-maxdepth", "1", "-type", "l", "-printf", "%p\\0%l\\0"]
        words = self.run(argv, timeout_s=_CALL_S, check=False).text.split("\0")
        return {path: target for path, target in zip(words[::2], words[1::2], strict=False) if target}

    def clocks(self) -> ClockReading | None:
        """Read both clocks in little more than a round trip; `None` if it takes a program."""
        return None

    def network_probe(self) -> NetworkProbe | None:
        """Return what measures the network from the host without a program; `None` if it takes one."""
        return None

    def rest(self) -> None:
        """End what runs on the host between calls, until the next call."""
        return

    def lost_for_good(self) -> str | None:
        """Why the host cannot come back any more; `None` if it answers. Waits while neither is certain."""
        return None

    def tell_losses(self, tell: Callable[[str], None]) -> None:  # noqa: ARG002 - a default
        """Report losses of the connection to `tell`, called in another thread.

        A report says that the host is unreachable and for how long that is tolerated, or that it is back.
        """
        return


@dataclass(frozen=True)
class Site:
    """The machines that one block runs on; one host may have both roles."""

    sut: Host
    client: Host
    labels: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[Host, ...] = ()
    """One host per node of a SUT that is a cluster, `sut` first; empty if the whole SUT is on `sut`."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Name of a host → its address for other hosts on the measured network."""
    container_addresses: Mapping[str, str] = field(default_factory=dict)
    """Name of a host → an address of this network, with prefix length, for a container of its own there."""

    @property
    def sut_hosts(self) -> tuple[Host, ...]:
        """The hosts of the SUT: one per node of a cluster, else the single host."""
        return self.nodes or (self.sut,)

    def host_of(self, number: int) -> Host:
        """The host of a SUT's node, counted from 1."""
        return self.nodes[number - 1] if self.nodes else self.sut

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Every host once, those of the SUT first."""
        return tuple({host.name: host for host in (self.sut, *self.nodes, self.client)}.values())
