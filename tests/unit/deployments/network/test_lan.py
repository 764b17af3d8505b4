"""A container with an address of its own on the network between two hosts: how it is told, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tare.deployments import Endpoint
from tare.deployments.network.between import Client, Server, decide_between
from tare.deployments.network.lan import link_of
from tare.deployments.network.path import Side
from tare.deployments.network.sockets import Connection
from tare.errors import RunFailed
from tare.record.between import Route
from tare.record.network_path import Hop, Wire
from tare.run.attempt.apart import must_be_routed
from tare.run.parity.declared import promised_between
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.study.values import NetworkKind

# ip -details -oneline link show, iproute2 6.1, Linux 6.18; the second as the manual has it for ipvlan.
MACVLAN = (
    "5: eth0@if3: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state UP \\    link/ether 2e:a0:e0:c5:09:5d brd "
    "ff:ff:ff:ff:ff:ff promiscuity 0 \\    macvlan mode bridge bcqueuelen 1000 addrgenmode eui64\n"
)
IPVLAN = "5: eth0@if3: <BROADCAST,UP> mtu 1500 \\    link/ether 2e:a0:e0:c5:09:5d \\    ipvlan  mode l2 bridge\n"
VETH = "5: eth0@if6: <UP> mtu 1500 \\    link/ether 02:42:ac:12:00:02 \\    veth addrgenmode eui64\n"
OWN, SERVER = Endpoint("10.0.0.3", 40000), Endpoint("10.0.0.102", 3306)
WIRE = Wire("load", "eth1", "db", "eth1")


@pytest.mark.parametrize(("text", "hop"), [(MACVLAN, Hop.MACVLAN), (IPVLAN, Hop.IPVLAN), (VETH, None), ("", None)])
def test_the_kind_of_link_is_the_kernel_s_word(text: str, hop: Hop | None) -> None:
    host = FakeHost(answers={("nsenter", "--target", "7", "--net", "ip"): Completed((), 0, text.encode())})
    assert link_of(host, 7) is hop


@pytest.mark.parametrize("link", [Hop.MACVLAN, Hop.IPVLAN, None])
def test_a_server_at_its_own_address_is_told_by_its_link(link: Hop | None) -> None:
    client = Client(Side("1", (Connection(OWN, SERVER, 1),)), False, "10.0.0.3", {})
    server = Server(Side("2", (Connection(SERVER, OWN, 2),)), False, link=link)
    path = decide_between(client, server, frozenset({SERVER}), WIRE)
    assert path is not None
    assert path.hop is (link or Hop.BRIDGE)


@pytest.mark.parametrize("kind", [NetworkKind.MACVLAN, NetworkKind.IPVLAN, NetworkKind.BRIDGE])
@pytest.mark.parametrize("client", [NetworkKind.HOST, NetworkKind.BRIDGE])
def test_each_promises_the_hop_of_its_name(kind: NetworkKind, client: NetworkKind) -> None:
    assert promised_between(kind, client) == {Hop(kind.value)}
    assert promised_between(kind, NetworkKind.SHARED) == frozenset()


def placed(route: str) -> Any:
    """A run whose SUT is on a bridge of its host, and the client's host with that route to it."""
    client = FakeHost("load", answers={("ip", "-o", "route", "get"): Completed((), 0, route.encode())})
    wire = SimpleNamespace(
        sut=FakeHost("db"),
        client=client,
        addresses={"db": "10.0.0.2"},
        devices={"client": Route("eth1", None, None, None, None, None)},
    )
    settings = SimpleNamespace(sut=SimpleNamespace(network=NetworkKind.BRIDGE))
    return SimpleNamespace(machine=SimpleNamespace(wire=wire), settings=settings, client_workdir="there")


SUT: Any = SimpleNamespace(first=SimpleNamespace(instance=SimpleNamespace(address="172.18.0.2")))


def test_a_bridge_that_the_client_s_host_has_a_route_to_is_reached() -> None:
    must_be_routed(placed("172.18.0.2 via 10.0.0.2 dev eth1 src 10.0.0.3 uid 0"), SUT)


@pytest.mark.parametrize(
    ("route", "seen"),
    [
        ("172.18.0.2 dev br-7 src 172.18.0.1 uid 0", "sends to it through br-7"),
        ("172.18.0.2 via 10.9.0.1 dev eth0 src 10.9.0.3 uid 0", "sends to it through eth0"),
        ("", "has no route to it"),
    ],
)
def test_a_bridge_without_a_route_by_the_measured_network_fails_the_run(route: str, seen: str) -> None:
    with pytest.raises(RunFailed, match=rf"the address 172.18.0.2, and load {seen}, not via 10.0.0.2"):
        must_be_routed(placed(route), SUT)
