"""The path that a client's connections took to a server, read from the sockets of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import final

from tare.deployments import Endpoint
from tare.sites import Process


class Hop(StrEnum):
    """What connects the two ends."""

    LOOPBACK = "loopback"
    """Both ends are in one network namespace."""
    SOCKET = "socket"
    """A Unix socket."""
    BRIDGE = "bridge"
    """Two namespaces; the client uses the server's own address."""
    DNAT = "dnat"
    """The kernel rewrites the address; the server sees the client's own source port."""
    DOCKER_PROXY = "docker-proxy"
    """A process reads and writes every byte; the server sees this process."""
    ROOTLESSPORT = "rootlessport"
    """RootlessKit's port driver of a user reads and writes every byte: one end on the host, one in the server's
    namespace."""
    SLIRP4NETNS = "slirp4netns"
    """A user's process holds the client's connection, and speaks to the namespace by a TCP/IP stack of its own on a
    tap."""
    PASTA = "pasta"
    """Like slirp4netns, but with a socket in the namespace if the client is on the host's loopback."""
    USER = "user"
    """QEMU reads and writes every byte; the guest sees QEMU's own address."""
    TAP = "tap"
    """A bridge and a tap into the guest; the client uses the guest's own address."""
    WIRE = "wire"
    """Between two hosts; the server is in its host's namespace and the client uses the host's own address."""
    MACVLAN = "macvlan"
    """Between two hosts; the server's namespace has an IP and a link-layer address of its own."""
    IPVLAN = "ipvlan"
    """Between two hosts; the server's namespace has an IP address of its own and the host's link-layer address."""
    MASQUERADE = "masquerade"
    """For a client behind a bridge: its host's kernel replaces the client's address by the host's own."""


CARRIED = frozenset({Hop.DOCKER_PROXY, Hop.ROOTLESSPORT, Hop.SLIRP4NETNS, Hop.PASTA})
"""Hops that are a process of their own on the host."""


@final
@dataclass(frozen=True, slots=True)
class Carrier:
    """The program that carries the traffic."""

    name: str
    """Name of its process."""
    user: int | None
    """Owner of its socket."""
    namespace: str
    """Inode of the network namespace that the socket is in."""


@final
@dataclass(frozen=True, slots=True)
class Wire:
    """The two hosts of a path, and the interface through which each reaches the other, according to its routes."""

    client_host: str
    """Name of the client's host."""
    client_device: str | None
    """Its interface."""
    server_host: str
    """Name of the server's host."""
    server_device: str | None
    """Its interface."""


@final
@dataclass(frozen=True, slots=True)
class NetworkPath:
    """How the client's connections really reach the server."""

    hop: Hop | None = None
    """`loopback`, `socket` (a Unix socket), `wire` (from host to host), `bridge`, `macvlan`, `ipvlan`, `dnat` or
    `docker-proxy`; with rootless Podman `rootlessport`, `slirp4netns` or `pasta`; into a virtual machine `user` or
    `tap`; `null` if tare could not match the two ends, or connections take several paths."""
    client_namespace: str = ""
    """Inode of the client's network namespace."""
    server_namespace: str = ""
    """Inode of the server's network namespace."""
    client_dialled: Endpoint | None = None
    """Address and port that the client connected to; for a client in a virtual machine, those that QEMU connected
    to."""
    server_sees: Endpoint | None = None
    """Address and port of the server's peer."""
    proxy: Process | None = None
    """The process that relays the connections (docker-proxy, rootlessport, slirp4netns, pasta), if there is one.
    Its CPU time is part of the path's cost."""
    connections: int = 0
    """Matched connections of one client process. If the warm-up is a separate process and tare matched all its
    connections, these are the warm-up's. Otherwise they are those of the client that measures: tare looks again
    after 0.5, 1, 2, 4 s and so on until it has matched all of them, or, if their number is not known, until no more
    appear. A notice reports a client that opens more connections than tare matched."""
    client_hop: Hop | None = None
    """`user` if the client is in a virtual machine and its connections to QEMU were observed inside; `masquerade`
    if the client's host replaces the client's address with its own; else `null`."""
    wire: Wire | None = None
    """The hosts and interfaces of a path between two hosts; else `null`."""
    carrier: Carrier | None = None
    """What `proxy` is; `null` without one."""

    @property
    def is_carried(self) -> bool:
        """Whether a process on the host reads and writes every byte."""
        return self.hop in CARRIED
