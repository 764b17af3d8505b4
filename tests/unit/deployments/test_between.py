"""The path between two hosts, decided from the sockets of both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tare.deployments import Endpoint
from tare.deployments.network.between import Client, Server, decide_between
from tare.deployments.network.path import Proxy, Side
from tare.deployments.network.sockets import Connection
from tare.deployments.network.tracking import parse_tracked, sources
from tare.record.network_path import Hop, NetworkPath, Wire
from tare.sites import Process

WIRE = Wire("load", "eth1", "db", "eth0")
CLIENT, SERVER = "192.168.7.3", "192.168.7.2"
HOME, BOX = Endpoint(CLIENT, 40000), Endpoint("172.18.0.2", 40000)
"""The client's end where it is in its host's namespace, and behind a bridge."""
DIALLED, INSIDE = Endpoint(SERVER, 21000), Endpoint("172.19.0.2", 21000)
"""The server's end as published, and in its own namespace."""


def client(local: Endpoint = HOME, *, boxed: bool = False, seen_as: Endpoint | None = None) -> Client:
    translated = {} if seen_as is None else {(local, DIALLED): seen_as}
    return Client(Side("client", (Connection(local, DIALLED, 7),)), boxed, CLIENT, translated)


def server(local: Endpoint, remote: Endpoint, *proxies: Proxy, in_host: bool = False) -> Server:
    return Server(Side("server", (Connection(local, remote, 9),)), in_host, proxies)


def decide(one: Client, other: Server) -> NetworkPath | None:
    return decide_between(one, other, frozenset({DIALLED}), WIRE)


@pytest.mark.parametrize(
    ("one", "other", "hop", "client_hop"),
    [
        (client(), server(DIALLED, HOME, in_host=True), Hop.WIRE, None),
        (client(), server(DIALLED, HOME), Hop.BRIDGE, None),
        (client(), server(INSIDE, HOME), Hop.DNAT, None),
        (client(BOX, boxed=True), server(DIALLED, HOME, in_host=True), Hop.WIRE, Hop.MASQUERADE),
        (client(BOX, boxed=True), server(INSIDE, HOME), Hop.DNAT, Hop.MASQUERADE),
        (client(BOX, boxed=True), server(DIALLED, BOX), Hop.BRIDGE, None),
    ],
)
def test_each_way_is_told_from_both_ends(one: Client, other: Server, hop: Hop, client_hop: Hop | None) -> None:
    path = decide(one, other)
    assert path is not None
    assert (path.hop, path.client_hop, path.connections, path.wire) == (hop, client_hop, 1, WIRE)


def test_a_proxy_between_is_told_by_the_sockets_that_it_holds() -> None:
    to_box = Connection(Endpoint("172.19.0.1", 50000), INSIDE, 2)
    proxy = Proxy(Process(5, 50, "boot"), (Connection(DIALLED, HOME, 1), to_box))
    path = decide(client(), server(INSIDE, to_box.local, proxy))
    assert path is not None
    assert path.hop is Hop.DOCKER_PROXY
    assert path.proxy == proxy.process


def test_a_masqueraded_port_that_changed_is_known_by_the_hosts_own_tracking() -> None:
    moved = Endpoint(CLIENT, 1024)
    known = decide(client(BOX, boxed=True, seen_as=moved), server(DIALLED, moved, in_host=True))
    unknown = decide(client(BOX, boxed=True), server(DIALLED, moved, in_host=True))
    assert known is not None
    assert unknown is not None
    assert (known.hop, known.client_hop) == (Hop.WIRE, Hop.MASQUERADE)
    assert unknown.hop is None


def test_a_client_in_its_hosts_namespace_is_never_taken_for_a_masqueraded_one() -> None:
    stranger = client(Endpoint("192.168.9.9", 40000))
    path = decide(stranger, server(DIALLED, HOME, in_host=True))
    assert path is not None
    assert path.hop is None


def test_connections_that_go_different_ways_have_no_one_hop() -> None:
    other = Connection(Endpoint(CLIENT, 40001), DIALLED, 8)
    two = replace(client(), side=Side("client", (Connection(HOME, DIALLED, 7), other)))
    both = Server(Side("server", (Connection(DIALLED, HOME, 1), Connection(INSIDE, other.local, 2))), in_host=True)
    path = decide(two, both)
    assert path is not None
    assert (path.hop, path.connections) == (None, 2)


def test_without_a_connection_to_the_server_there_is_no_path() -> None:
    elsewhere = replace(client(), side=Side("client", (Connection(HOME, Endpoint("192.168.7.9", 80), 7),)))
    assert decide(elsewhere, server(DIALLED, HOME)) is None


def test_a_side_that_has_ended_tells_nothing() -> None:
    assert decide(replace(client(), side=replace(client().side, namespace="")), server(DIALLED, HOME)) is None


TRACKED = """\
ipv4     2 tcp      6 431999 ESTABLISHED src=172.18.0.2 dst=192.168.7.2 sport=40000 dport=21000 src=192.168.7.2 \
dst=192.168.7.3 sport=21000 dport=1024 [ASSURED] mark=0 zone=0 use=2
ipv4     2 tcp      6 300 ESTABLISHED src=192.168.7.3 dst=192.168.7.2 sport=41000 dport=22 src=192.168.7.2 \
dst=192.168.7.3 sport=22 dport=41000 [ASSURED] mark=0 zone=0 use=2
ipv4     2 udp      17 29 src=172.18.0.2 dst=192.168.7.2 sport=5 dport=6 src=192.168.7.2 \
dst=192.168.7.3 sport=6 dport=7
"""
"""As /proc/net/nf_conntrack of Linux 6.18 writes it; addresses altered."""


def test_what_a_host_tracks_tells_whose_source_it_rewrites() -> None:
    assert sources(tuple(parse_tracked(TRACKED))) == {(BOX, DIALLED): Endpoint(CLIENT, 1024)}
    assert sources(tuple(parse_tracked(""))) == {}
