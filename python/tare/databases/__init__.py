"""Databases: how a server is initialised, started, asked and stopped. Where it runs is a deployment's business."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from tare.sites import Completed

Exec = Callable[[Sequence[str], float, bytes], Completed]
"""`exec(argv, timeout_s, stdin)` inside the running server's root, as the image's user.

A program that fails is a `Completed` with its code; one that takes longer than `timeout_s` raises `TimedOut`.
"""


@dataclass(frozen=True)
class Certificate:
    """A server's certificate, its key and the authority that has signed it, each in PEM.

    `keystore`: certificate and key in PKCS #12, locked by the run's password, for servers on a JVM.
    """

    authority: str
    certificate: str
    key: str = field(repr=False)
    keystore: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Secrets:
    """Made anew for every run; never stored, never in a log. `certificate`: `None` where nothing is encrypted."""

    user: str
    password: str
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Member:
    """One node among several. `number`: from 1, `of` how many.

    `seed`: where the first one is found by the others; its own address for that one. `own_port`: one that no other
    node has, for what has no address of its own to listen at.
    """

    number: int
    of: int
    seed: str
    own_port: int
    peer_port: int | None = None
    """At which nodes on hosts of their own find each other; `None`: the database's usual one."""


@dataclass(frozen=True)
class ServerPlan:
    """All a database needs to know to say how it is run.

    `data_dir` and `run_dir` are paths inside the image's root: the data, and a small directory for sockets,
    pid and configuration files that is empty at each start. `listen` is the address to bind; of a
    member of a cluster, its own address or a name for it, at which the other nodes and clients find it.
    """

    data_dir: str
    run_dir: str
    listen: str
    port: int
    settings: Mapping[str, str | int | float | bool]
    secrets: Secrets
    member: Member | None = None
    """`None` for a server that is alone."""

    @property
    def own_address(self) -> str:
        """At which `ready` and the others ask it: `listen`, or loopback where it listens everywhere."""
        return "127.0.0.1" if self.listen in ("0.0.0.0", "::") else self.listen  # noqa: S104 - compared, not bound


@dataclass(frozen=True)
class ServerCommand:
    """What to execute. `files`: configuration to be written into `run_dir` first, name → content.

    `binary_files`: the same of what is no text; of these only the names are kept with a run.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str]
    binary_files: Mapping[str, bytes] = field(default_factory=dict)


class Database(Protocol):
    """A server, described. No method starts a process itself."""

    per_run: ClassVar[frozenset[str]]
    """Names in `effective` that each run has its own value of: a port, a host name."""

    derived_settings: ClassVar[Mapping[str, frozenset[str]]]
    """Dotted key of a study → names in `effective` that the server derives from it."""

    safe_to_kill: ClassVar[bool]
    """Whether the server may be killed when its data are no longer needed, with nothing lost from its log."""

    slow_start_s: ClassVar[float]
    """Seconds until its first answer, beyond the one second assumed of every server; for estimates of time."""

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """The one-shot command that fills an empty data directory."""
        ...

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """The server's own command."""
        ...

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether a query is answered right now (never a sleep, never "the port is open")."""
        ...

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """The settings in force, read back from the server, by name."""
        ...

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Ask the server to stop cleanly, so that its data directory can be copied."""
        ...
