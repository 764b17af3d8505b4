"""Engines that an arm names, in addition to the default one: their addresses, and whether the right one answers."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.errors import EnvironmentLacks
from tare.record.engine_facts import EngineFacts
from tare.sites import Host, Process
from tare.sites.engine import connect, engine_facts
from tare.sites.ledger import Kind, Ledger, Made

if TYPE_CHECKING:
    from docker import DockerClient

_CALL_S = 60.0
_AT = "@"
ROOTLESS = "podman-rootless"
"""The engine that needs tare's help, as a user may neither set limits nor give files away."""
_OF_ENGINE = frozenset({Kind.CONTAINER, Kind.NETWORK, Kind.VOLUME, Kind.IMAGE})


@dataclass(frozen=True)
class Known:
    """An engine by name. `variable`: environment variable with its address; `socket`: its default address.

    `start`: how to start it at its default address.
    """

    product: str
    variable: str
    socket: Callable[[], str]
    start: str
    rootless: bool = False


def _users_socket() -> str:
    """Socket of the user who called sudo, else of the current user."""
    return f"unix:///run/user/{os.environ.get('SUDO_UID', os.getuid())}/podman/podman.sock"


ENGINES: Mapping[str, Known] = {
    "docker": Known("docker", "DOCKER_HOST", lambda: "unix:///var/run/docker.sock", "systemctl start docker"),
    "podman": Known(
        "podman", "TARE_PODMAN", lambda: "unix:///run/podman/podman.sock", "systemctl start podman.socket"
    ),
    ROOTLESS: Known(
        "podman",
        "TARE_PODMAN_ROOTLESS",
        _users_socket,
        "as that user: systemctl --user start podman.socket (without a login, first: loginctl enable-linger USER)",
        rootless=True,
    ),
}
"""Name in a study → engine."""


@dataclass(frozen=True)
class Service:
    """The process that listens at an engine's socket, and the user whose engine it is."""

    pid: int
    uid: int
    gid: int


_CREDENTIALS = struct.Struct("3i")
_KNOCK_S = 5.0


def service_at(address: str) -> Service:
    """The service, as the kernel reports the socket's peer (unix(7), SO_PEERCRED).

    `EnvironmentLacks` if not a Unix socket.
    """
    scheme, _, path = address.partition("://")
    if scheme != "unix":
        raise EnvironmentLacks(
            f"a rootless engine must be on this machine, and {address} is not a Unix socket",
            hint="give the path of its socket: unix:///run/user/UID/podman/podman.sock",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.settimeout(_KNOCK_S)
        try:
            knocking.connect(path)
        except OSError as error:
            raise EnvironmentLacks(f"nothing answers at {address}: {error.strerror}") from error
        raw = knocking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Service(*_CREDENTIALS.unpack(raw))


def address_of(name: str) -> str:
    """Address of the engine: from its variable, else the default."""
    known = ENGINES[name]
    return os.environ.get(known.variable) or known.socket()


def connect_to(name: str, *, timeout_s: float = _CALL_S) -> DockerClient:
    """A client of the named engine. Raises `EnvironmentLacks` if another engine, or none, answers there."""
    known, address = ENGINES[name], address_of(name)
    try:
        client = connect(address, timeout_s=timeout_s)
    except EnvironmentLacks as error:
        start = f"{known.start}, or set {known.variable} to its address; see `tare doctor`"
        hint = error.hint if isinstance(error.__cause__, PermissionError) else start
        raise EnvironmentLacks(f"no engine `{name}`: {error.what}", hint=hint) from error
    facts = engine_facts(client)
    if (facts.engine, facts.engine_rootless) != (known.product, known.rootless):
        client.close()
        description = f"{facts.engine}{', rootless' if facts.engine_rootless else ''}"
        raise EnvironmentLacks(
            f"{description} answers at {address}, not the engine `{name}`", hint=f"set {known.variable}"
        )
    return client


def why_no_user_ranges(facts: EngineFacts) -> str | None:
    """Why a user's engine can run no program of another user; `None` if it can, or does not report it."""
    maps = facts.engine_id_maps or {}
    for kind, file in (("uidmap", "subuid"), ("gidmap", "subgid")):
        rows = maps.get(kind)
        if rows is not None and sum(row["size"] for row in rows) <= 1:
            return (
                f"the user of rootless Podman has no range of ids in /etc/{file} for the users of a container "
                "(as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER; then as that user:"
                " podman system migrate)"
            )
    return None


class Engines:
    """Engines that arms name; each is connected to on its first use."""

    def __init__(self, host: Host | None = None) -> None:
        self._host = host
        self._open: dict[str, DockerClient] = {}

    def client(self, name: str) -> DockerClient:
        """A client of the engine. Raises `EnvironmentLacks` if it does not answer."""
        if name not in self._open:
            self._open[name] = connect_to(name)
        return self._open[name]

    def facts(self, name: str) -> EngineFacts:
        """Facts that the engine reports."""
        return engine_facts(self.client(name), self._host)

    def there(self) -> Iterator[str]:
        """Names of all other engines than the default whose socket exists: a dead tare may have used them.

        A socket in a directory that this user may not enter (root's Podman, 0700) is no engine of this user.
        """
        for name in ENGINES:
            scheme, _, path = address_of(name).partition("://")
            if name != "docker" and (scheme != "unix" or os.access(path, os.F_OK)):
                yield name

    def close(self) -> None:
        """Close all connections."""
        while self._open:
            self._open.popitem()[1].close()


@dataclass(frozen=True)
class EngineLedger:
    """A ledger that lists engine resources with the name of the engine: `IDENT@ENGINE`."""

    ledger: Ledger
    engine: str

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:
        """Note it with the name of the engine."""
        self.ledger.note(kind, self._qualified(kind, ident), host=host, keep=keep)

    def forget(self, kind: Kind, ident: str, *, host: str = "local") -> None:
        """Delete the entry with the name of the engine."""
        self.ledger.forget(kind, self._qualified(kind, ident), host=host)

    def entries(self) -> tuple[Made, ...]:
        """All entries, those of other engines included."""
        return self.ledger.entries()

    def abandoned(self) -> tuple[Made, ...]:
        """All entries whose owner is dead."""
        return self.ledger.abandoned()

    def owner_on(self, host: str) -> Process:
        """Owner of what this process notes for that host."""
        return self.ledger.owner_on(host)

    def home(self, host: str) -> str:
        """Home on that host."""
        return self.ledger.home(host)

    def _qualified(self, kind: Kind, ident: str) -> str:
        return f"{ident}{_AT}{self.engine}" if kind in _OF_ENGINE else ident


@dataclass(frozen=True)
class EntryResource:
    """The resource that an entry of the ledger names. `engine`: `None` for the default engine."""

    ident: str
    engine: str | None


def parse_entry(ident: str) -> EntryResource:
    """Parse an entry: `tare-x-sut@podman` → `tare-x-sut` of `podman`."""
    name, at, engine = ident.rpartition(_AT)
    return EntryResource(name, engine) if at and engine in ENGINES else EntryResource(ident, None)
