"""Databases: how to initialise, start, query and stop a server. Deployments decide where it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from tare.sites import Completed

Exec = Callable[[Sequence[str], float, bytes], Completed]
"""`exec(argv, timeout_s, stdin)` runs a program inside the running server's root, as the image's user.

A program that fails gives a `Completed` with its code; one that takes longer than `timeout_s` raises `TimedOut`.
"""


@dataclass(frozen=True)
class Certificate:
    """A server's certificate, its key and the authority that signed it, each in PEM.

    `keystore`: certificate and key in PKCS #12, locked by the run's password, for servers on a JVM.
    """

    authority: str
    certificate: str
    key: str = field(repr=False)
    keystore: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Secrets:
    """Login of one run, never stored or logged. `certificate`: `None` if nothing is encrypted."""

    user: str
    password: str
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Member:
    """One node of a cluster. `number`: from 1. `of`: number of nodes.

    `seed`: address of the first node, at which the others find the cluster. `own_port`: a port that no other node
    has, for listeners that cannot be given an address.
    """

    number: int
    of: int
    seed: str
    own_port: int
    peer_port: int | None = None
    """Port at which nodes on hosts of their own find each other; `None`: the database's usual port."""


@dataclass(frozen=True)
class ServerPlan:
    """All that a database needs to know to describe how its server is run.

    `data_dir` and `run_dir` are paths inside the image's root: the data, and a small directory for sockets,
    pid and configuration files that is empty at each start. `listen` is the address to bind; for a
    member of a cluster, the address or name at which the other nodes and clients find it.
    """

    data_dir: str
    run_dir: str
    listen: str
    port: int
    settings: Mapping[str, str | int | float | bool]
    secrets: Secrets
    member: Member | None = None
    """`None` for a single server."""
    log_file: str | None = None
    """File that the server writes its log to; `None`: its output."""
    socket: str | None = None
    """Path of the Unix socket that clients use, in a directory of its own; `None`: they use TCP."""

    @property
    def own_address(self) -> str:
        """Address for queries such as `ready`: `listen`, or loopback if the server listens on all addresses."""
        return "127.0.0.1" if self.listen in ("0.0.0.0", "::") else self.listen  # noqa: S104 - compared, not bound


@dataclass(frozen=True)
class ServerCommand:
    """What to execute. `files`: configuration to write into `run_dir` first, name → content.

    `binary_files`: the same for files that are not text; only their names are kept with a run.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str]
    binary_files: Mapping[str, bytes] = field(default_factory=dict)


class Database(Protocol):
    """Description of a server. No method starts a process itself."""

    per_run: ClassVar[frozenset[str]]
    """Names in `effective` whose values differ from run to run, such as a port or a host name."""

    derived_settings: ClassVar[Mapping[str, frozenset[str]]]
    """Dotted key of a study → names in `effective` whose values the server derives from that key."""

    safe_to_kill: ClassVar[bool]
    """Whether the server may be killed when its data are no longer needed, without losing anything from its log."""

    slow_start_s: ClassVar[float]
    """Seconds until its first answer, beyond the one second assumed of every server; for estimates of time."""

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Describe the one-shot command that fills an empty data directory."""
        ...

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Describe the command that runs the server in the foreground."""
        ...

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether the server answers a query right now (never a sleep, never "the port is open")."""
        ...

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read the settings in force back from the server, by name."""
        ...

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Ask the server to stop cleanly, so that its data directory can be copied."""
        ...
