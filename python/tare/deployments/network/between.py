"""The path of connections between two hosts, read from the sockets of both, including address translation.

A server sees a client behind a masquerade under the address of the client's host. The host's connection tracking
shows which connection that is; if it cannot be read, the port does, which the kernel keeps unless it is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tare.deployments import Endpoint, Instance
from tare.deployments.network.lan import link_of
from tare.deployments.network.path import (
    Proxy,
    Side,
    endpoints,
    members,
    namespace,
    proxies,
)
from tare.deployments.network.sockets import Connection, connections, socket_inodes
from tare.deployments.network.tracking import sources, tracked
from tare.record.network_path import Hop, NetworkPath, Wire
from tare.sites import Host
from tare.study.values import OWN_ADDRESS


@dataclass(frozen=True)
class Ends:
    """The two hosts, the address under which each is known to the other, and the interfaces between them."""

    client: Host
    client_address: str
    server: Host
    server_address: str
    wire: Wire


@dataclass(frozen=True)
class Seen:
    """A client's connection as seen from outside its host: its source, and whether that is masqueraded."""

    source: Endpoint
    masqueraded: bool


@dataclass(frozen=True)
class Client:
    """The client's side.

    `own_namespace`: it does not use its host's network namespace. `translated`: source address of each masqueraded
    connection, as the host tracks it.
    """

    side: Side
    own_namespace: bool
    address: str
    translated: Mapping[tuple[Endpoint, Endpoint], Endpoint]


@dataclass(frozen=True)
class Server:
    """The server's side.

    `in_host`: it uses its host's network namespace. `proxies`: every docker-proxy on the host. `link`: kind of link
    that attaches its own namespace to the network between the hosts; `None` if there is none.
    """

    side: Side
    in_host: bool
    proxies: tuple[Proxy, ...] = ()
    link: Hop | None = None


@dataclass(frozen=True)
class _Match:
    hop: Hop
    seen: Seen
    client: Connection
    server: Connection
    proxy: Proxy | None = None


def observe_between(ends: Ends, client: Instance, server: Instance) -> NetworkPath | None:
    """Read the sockets of both hosts once; `None` while the client has no connection to the server.

    Connections come and go between the two readings; if no path results, the caller tries again. Programs are run
    last and rarely: over SSH each takes some milliseconds, in which a short phase may end.
    """
    dialled = endpoints(server)
    every = connections(ends.client, client.process.pid)
    if not any(one.remote in dialled for one in every):
        return None
    theirs = tuple(
        one for one in connections(ends.server, server.process.pid) if one.local.port == server.task.port
    )
    held = socket_inodes(ends.client, members(ends.client, client.process.pid))
    own, of_server = _spaces(ends.client, client.process.pid), _spaces(ends.server, server.process.pid)
    boxed = own.task != own.host
    return decide_between(
        Client(
            Side(own.task, tuple(one for one in every if one.inode in held)),
            boxed,
            ends.client_address,
            sources(tracked(ends.client)) if boxed else {},
        ),
        Server(
            Side(of_server.task, theirs),
            of_server.task == of_server.host,
            proxies(ends.server) if server.published is not None else (),
            link_of(ends.server, server.process.pid) if server.task.network in OWN_ADDRESS else None,
        ),
        dialled,
        ends.wire,
    )


def decide_between(client: Client, server: Server, dialled: frozenset[Endpoint], wire: Wire) -> NetworkPath | None:
    """Match the client's connections to any endpoint of `dialled` with the server's connections.

    `None` also if a side has ended meanwhile: its namespace is then unknown, which does not make it a different
    one.
    """
    mine = [one for one in client.side.connections if one.remote in dialled]
    if not mine or not client.side.namespace or not server.side.namespace:
        return None
    matches = [crossing for one in mine if (crossing := _match(one, client, server))]
    ways = Counter((match.hop, match.seen.masqueraded) for match in matches)
    first = matches[0] if len(ways) == 1 else None
    return NetworkPath(
        hop=first.hop if first else None,
        client_namespace=client.side.namespace,
        server_namespace=server.side.namespace,
        client_dialled=first.client.remote if first else mine[0].remote,
        server_sees=first.server.remote if first else None,
        proxy=first.proxy.process if first and first.proxy else None,
        connections=len(matches),
        client_hop=Hop.MASQUERADE if first and first.seen.masqueraded else None,
        wire=wire,
    )


def _match(one: Connection, client: Client, server: Server) -> _Match | None:
    theirs = server.side.connections
    for seen in _seen(one, client):
        for other in theirs:
            if other.local == one.remote and other.remote == seen.source:
                return _Match(Hop.WIRE if server.in_host else server.link or Hop.BRIDGE, seen, one, other)
        for proxy in server.proxies:
            front = any(held.local == one.remote and held.remote == seen.source for held in proxy.connections)
            for held in proxy.connections if front else ():
                for other in theirs:
                    if other.local == held.remote and other.remote == held.local:
                        return _Match(Hop.DOCKER_PROXY, seen, one, other, proxy)
        for other in theirs:
            if other.remote == seen.source and other.local != one.remote:
                return _Match(Hop.DNAT, seen, one, other)
    return None


def _seen(one: Connection, client: Client) -> Iterator[Seen]:
    """Sources under which a server on another host may see the connection."""
    tracked = client.translated.get((one.local, one.remote))
    if tracked is not None:
        yield Seen(tracked, masqueraded=True)
        return
    yield Seen(one.local, masqueraded=False)
    if client.own_namespace and one.local.address != client.address:
        yield Seen(Endpoint(client.address, one.local.port), masqueraded=True)


@dataclass(frozen=True)
class _Spaces:
    """Inodes of network namespaces: a task's (empty if it has ended) and its host's."""

    task: str
    host: str


def _spaces(host: Host, pid: int) -> _Spaces:
    return _Spaces(namespace(host, pid), namespace(host, "self"))
