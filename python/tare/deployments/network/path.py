"""The network path that a client's traffic really takes, read from the sockets of both sides."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tare.deployments import POD, Endpoint, Instance
from tare.deployments.cgroup.hierarchy import cgroups_of, parse_proc_cgroup
from tare.deployments.network.sockets import Connection, connections, socket_inodes
from tare.deployments.network.tracking import tracked, translations
from tare.deployments.vm.guest import GuestHost
from tare.deployments.vm.network import HOST_LOOPBACK
from tare.record.network_path import Carrier, Hop, NetworkPath
from tare.sites import Host, Process
from tare.sites.process import identify, named

_LOOPBACKS = ("127.0.0.1", "::1")
_TRIES = 10
_BETWEEN_TRIES_S = 0.02


Translations = Mapping[tuple[Endpoint, Endpoint], tuple[Endpoint, Endpoint]]
"""Source and destination of a connection as its program sees them → as the other end sees them."""


@dataclass(frozen=True)
class Side:
    """Connections as one side sees them: the client's own sockets, or all in the server's namespace."""

    namespace: str
    connections: tuple[Connection, ...]


CARRIERS = {
    "docker-proxy": Hop.DOCKER_PROXY,
    "rootlessport": Hop.ROOTLESSPORT,
    "slirp4netns": Hop.SLIRP4NETNS,
    "pasta": Hop.PASTA,
    "pasta.avx2": Hop.PASTA,
    "passt.avx2": Hop.PASTA,
}
"""Process name → kind of hop, for programs that carry connections between two namespaces."""
_STACKS = {Hop.SLIRP4NETNS: "10.0.2.2"}
"""Programs with a TCP/IP stack of their own → address from which they speak to a server (slirp4netns(1))."""


@dataclass(frozen=True)
class Proxy:
    """A program that carries connections, with the sockets that it holds.

    `inside`: its connections in the server's namespace. `name`: name of its process.
    """

    process: Process
    connections: tuple[Connection, ...]
    name: str = "docker-proxy"
    inside: tuple[Connection, ...] = ()


@dataclass(frozen=True)
class _Match:
    hop: Hop
    client: Connection
    server: Connection
    proxy: Proxy | None = None
    front: Connection | None = None
    """The proxy's end of the client's connection."""


def observe_path(host: Host, client: Instance, server: Instance) -> NetworkPath | None:
    """Read the sockets of both sides; `None` while the client has no connection to the server.

    A connection that is being made shows one end before the other, so sockets without a match are read again.
    """
    path = _observe_outside(host, client, server)
    if path is None or client.guest is None:
        return path
    return out_of_guest(path, connections(GuestHost.of(host, client), client.guest.pid))


def _observe_outside(host: Host, client: Instance, server: Instance) -> NetworkPath | None:
    """The path on the host; for a client in a virtual machine, the sockets are those that QEMU holds for it."""
    if server.guest is not None:
        return _observe_guest(host, client, server)
    for _ in range(_TRIES):
        path = _observe_once(host, client, server)
        if path is None or path.hop is not None:
            break
        time.sleep(_BETWEEN_TRIES_S)
    return path


def out_of_guest(path: NetworkPath, inside: tuple[Connection, ...]) -> NetworkPath:
    """Add to `path` how connections leave the client's virtual machine, which sees them as `inside`.

    If the machine has none to the address that QEMU dialled, the whole path is unknown.
    """
    dialled = path.client_dialled
    inner = dialled
    if dialled is not None and dialled.address in _LOOPBACKS:
        inner = replace(dialled, address=HOST_LOOPBACK)
    if any(one.remote == inner for one in inside):
        return replace(path, client_hop=Hop.USER)
    return replace(path, hop=None, server_sees=None, proxy=None, connections=0)


def decide_path(
    client: Side,
    server: Side,
    dialled: frozenset[Endpoint],
    proxies: tuple[Proxy, ...],
    translated: Translations | None = None,
) -> NetworkPath | None:
    """Match the client's connections to any endpoint of `dialled` with the server's connections.

    `translated`: connections of which the kernel rewrites both ends, as it tracks them. `None` also if a side has
    ended meanwhile: its namespace is then unknown, which does not make it a different one.
    """
    mine = [connection for connection in client.connections if connection.remote in dialled]
    if not mine or not client.namespace or not server.namespace:
        return None
    candidates = (_match(one, client, server, proxies, translated or {}) for one in mine)
    matches = [match for match in candidates if match is not None]
    hops = Counter(match.hop for match in matches)
    first = matches[0] if len(hops) == 1 else None
    return NetworkPath(
        hop=first.hop if first else None,
        client_namespace=client.namespace,
        server_namespace=server.namespace,
        client_dialled=first.client.remote if first else mine[0].remote,
        server_sees=first.server.remote if first else None,
        proxy=first.proxy.process if first and first.proxy else None,
        connections=len(matches),
        carrier=_carrier(first, client.namespace) if first else None,
    )


def _carrier(match: _Match, namespace: str) -> Carrier | None:
    """Carrier of a match.

    The proxy's front is in the client's connection table, so its namespace is the client's.
    """
    if match.proxy is None or match.front is None:
        return None
    return Carrier(match.proxy.name, match.front.user, namespace)


def _match(
    one: Connection, client: Side, server: Side, proxies: tuple[Proxy, ...], translated: Translations
) -> _Match | None:
    same = client.namespace == server.namespace
    # Loopback ends at its namespace: a proxy's connection there may by chance have the port of a client outside.
    reached = [each for each in server.connections if same or each.remote.address not in _LOOPBACKS]
    for other in reached:
        if other.local == one.remote and other.remote == one.local:
            return _Match(Hop.LOOPBACK if same else Hop.BRIDGE, one, other)
    for proxy in proxies:
        front = next((own for own in proxy.connections if (own.local, own.remote) == (one.remote, one.local)), None)
        if front is not None and (behind := _server_end(proxy, server)) is not None:
            return _Match(CARRIERS[proxy.name], one, behind, proxy, front)
    if (seen := translated.get((one.local, one.remote))) is not None:
        both = (other for other in server.connections if (other.remote, other.local) == seen)
        return next((_Match(Hop.DNAT, one, other) for other in both), None)
    for other in reached:
        if other.remote.port == one.local.port and other.local != one.remote:
            return _Match(Hop.DNAT, one, other)
    return None


def _server_end(proxy: Proxy, server: Side) -> Connection | None:
    """The server's connection from a proxy: the proxy holds the other end, or has a TCP/IP stack of its own."""
    for held in (*proxy.connections, *proxy.inside):
        for other in server.connections:
            if other.local == held.remote and other.remote == held.local:
                return other
    stack = _STACKS.get(CARRIERS[proxy.name])
    own = (one for one in server.connections if one.remote.address == stack)
    return next(own, None)


def decide_guest_path(
    client: Side, outside: tuple[Connection, ...], inside: Side, dialled: Endpoint
) -> NetworkPath | None:
    """The path to a server in a virtual machine.

    `outside`: connections that QEMU holds; `inside`: those of the guest. With QEMU's user network, the two
    connections share nothing by which they could be matched one by one: it is enough that QEMU holds the client's
    connection and that the guest has one from QEMU.
    """
    mine = [connection for connection in client.connections if connection.remote == dialled]
    if not mine:
        return None
    for hop, theirs in ((Hop.TAP, inside.connections), (Hop.USER, outside if inside.connections else ())):
        pairs = [
            (one, other)
            for one in mine
            for other in theirs
            if (other.local, other.remote) == (one.remote, one.local)
        ]
        if pairs:
            sees = pairs[0][1] if hop is Hop.TAP else inside.connections[0]
            return NetworkPath(hop, client.namespace, inside.namespace, dialled, sees.remote, None, len(pairs))
    return NetworkPath(None, client.namespace, inside.namespace, dialled, None, None, 0)


def _observe_guest(host: Host, client: Instance, server: Instance) -> NetworkPath | None:
    """Read only once: each look inside takes CPU time from the measured system."""
    held = socket_inodes(host, members(host, client.process.pid))
    mine = tuple(one for one in connections(host, client.process.pid) if one.inode in held)
    dialled = Endpoint(server.address, server.task.port)
    if not any(one.remote == dialled for one in mine):
        return None
    qemu = socket_inodes(host, [server.process.pid])
    outside = tuple(one for one in connections(host, server.process.pid) if one.inode in qemu)
    inner = GuestHost.of(host, server)
    pid = server.guest.pid if server.guest is not None else 1
    inside = tuple(one for one in connections(inner, pid) if one.local.port == server.task.port)
    return decide_guest_path(
        Side(namespace(host, client.process.pid), mine), outside, Side("guest", inside), dialled
    )


def _observe_once(host: Host, client: Instance, server: Instance) -> NetworkPath | None:
    held = socket_inodes(host, members(host, client.process.pid))
    outside = connections(host, client.process.pid)
    mine = tuple(one for one in outside if one.inode in held)
    inside = connections(host, server.process.pid)
    theirs = tuple(one for one in inside if one.local.port == server.task.port)
    return decide_path(
        Side(namespace(host, client.process.pid), mine),
        Side(namespace(host, server.process.pid), theirs),
        endpoints(server),
        proxies(host, outside, inside),
        None if server.task.pod is None and server.deployment != POD else translations(tracked(host)),
    )


def endpoints(server: Instance) -> frozenset[Endpoint]:
    """All endpoints at which a client may reach the server."""
    port = server.task.port
    own = {Endpoint(address, port) for address in (server.address, *_LOOPBACKS)}
    return frozenset(own | ({server.published} if server.published else set()))


def members(host: Host, pid: int) -> list[int]:
    """Processes of an instance: those in the smallest cgroup that its process is in, which belongs to it alone."""
    cgroups = cgroups_of(host)
    own = (host.read(f"/proc/{pid}/cgroup") or b"").decode(errors="replace")
    if all(path == "/" for path in parse_proc_cgroup(own).values()):
        return [pid]  # the root cgroup holds most of the machine and belongs to no instance
    listed = [host.read(path) for path in cgroups.procs_files(own)]
    members = [[int(line) for line in raw.split()] for raw in listed if raw]
    return min(members, key=len, default=[pid])


def namespace(host: Host, pid: int | str) -> str:
    """Inode of a process's network namespace; empty if the process has ended."""
    link = f"/proc/{pid}/ns/net"
    return host.links([link]).get(link, "").removeprefix("net:[").removesuffix("]")


def proxies(
    host: Host, outside: tuple[Connection, ...] = (), inside: tuple[Connection, ...] = ()
) -> tuple[Proxy, ...]:
    """All programs of the host that carry connections.

    `outside`, `inside`: connections of the client's and of the server's namespace. A program may be in another
    namespace than its sockets: rootlessport is in the container's.
    """
    names = named(host, CARRIERS)
    held = socket_inodes(host, list(names))
    listening = []
    for pid, name in names.items():
        process = identify(host, pid)
        if process is not None:
            seen = dict.fromkeys((*connections(host, pid), *outside))
            own = tuple(one for one in seen if held.get(one.inode) == pid)
            beyond = tuple(one for one in inside if held.get(one.inode) == pid)
            listening.append(Proxy(process, own, name, beyond))
    return tuple(listening)
