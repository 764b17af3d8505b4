"""Paths decided on tables captured from a real engine (Docker 20.10, nc to httpd in containers)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.deployments import Endpoint
from tare.deployments.network.path import Proxy, Side, decide_path, members, out_of_guest
from tare.deployments.network.sockets import Connection, parse_tcp
from tare.deployments.vm.network import HOST_LOOPBACK
from tare.record.network_path import Hop
from tare.sites import Process
from tare.sites.fake import FakeHost

DATA = Path(__file__).parents[3] / "data" / "network-path"
PROXY = Process(4543, 1, "boot")


def table(name: str) -> tuple[Connection, ...]:
    return parse_tcp((DATA / name).read_text())


def sides(network: str) -> tuple[Side, Side]:
    return Side("1", table(f"{network}.client.tcp")), Side("2", table(f"{network}.server.tcp"))


@pytest.mark.parametrize(
    ("network", "dialled", "hop", "server_sees"),
    [
        ("bridge", Endpoint("172.22.0.2", 5432), Hop.BRIDGE, Endpoint("172.22.0.1", 53646)),
        ("published-address", Endpoint("172.21.0.1", 32768), Hop.DNAT, Endpoint("172.21.0.1", 41140)),
        ("published-loopback", Endpoint("127.0.0.1", 32792), Hop.DOCKER_PROXY, Endpoint("172.20.0.1", 42528)),
    ],
)
def test_captured_paths(network: str, dialled: Endpoint, hop: Hop, server_sees: Endpoint) -> None:
    proxies = (Proxy(PROXY, table("published-loopback.proxy.tcp")),)
    path = decide_path(*sides(network), frozenset({dialled}), proxies)
    assert path is not None
    assert (path.hop, path.client_dialled, path.server_sees) == (hop, dialled, server_sees)
    assert path.proxy == (PROXY if hop is Hop.DOCKER_PROXY else None)
    assert path.connections == 1


def test_the_same_namespace_is_loopback_whatever_the_address() -> None:
    client, server = sides("bridge")
    path = decide_path(client, Side("1", server.connections), frozenset({Endpoint("172.22.0.2", 5432)}), ())
    assert path is not None
    assert path.hop is Hop.LOOPBACK


def test_a_side_that_ended_while_it_was_looked_at_is_no_path_and_no_other_namespace() -> None:
    client, server = sides("bridge")
    dialled = frozenset({Endpoint("172.22.0.2", 5432)})
    assert decide_path(Side("", client.connections), server, dialled, ()) is None
    assert decide_path(client, Side("", server.connections), dialled, ()) is None


def test_no_connection_to_the_server_is_no_path() -> None:
    assert decide_path(*sides("bridge"), frozenset({Endpoint("10.0.0.1", 1)}), ()) is None
    assert decide_path(Side("1", ()), Side("2", ()), frozenset(), ()) is None


def test_the_way_out_of_a_clients_machine_is_seen_inside_or_nothing_is_claimed() -> None:
    dialled = Endpoint("172.22.0.2", 5432)
    path = decide_path(*sides("bridge"), frozenset({dialled}), ())
    assert path is not None
    own = Endpoint("10.0.2.15", 40000)
    whole = out_of_guest(path, (Connection(own, dialled, 7),))
    assert (whole.hop, whole.client_hop, whole.connections) == (Hop.BRIDGE, Hop.USER, 1)
    for inside in ((), (Connection(own, Endpoint(HOST_LOOPBACK, 5432), 7),)):
        unseen = out_of_guest(path, inside)
        assert (unseen.hop, unseen.client_hop, unseen.server_sees, unseen.connections) == (None, None, None, 0)


def test_a_clients_machine_knows_its_hosts_loopback_by_another_address() -> None:
    dialled = Endpoint("127.0.0.1", 32792)
    path = decide_path(*sides("published-loopback"), frozenset({dialled}), ())
    assert path is not None
    inside = (Connection(Endpoint("10.0.2.15", 40000), Endpoint(HOST_LOOPBACK, 32792), 7),)
    assert out_of_guest(path, inside).client_hop is Hop.USER


def test_a_proxy_that_is_not_docker_proxy_is_not_guessed() -> None:
    client, server = sides("published-loopback")
    path = decide_path(client, server, frozenset({Endpoint("127.0.0.1", 32792)}), ())
    assert path is not None
    assert (path.hop, path.proxy, path.server_sees, path.connections) == (None, None, None, 0)


def test_another_ports_proxy_is_not_blamed() -> None:
    client, server = sides("published-loopback")
    others = tuple(
        Connection(one.local, Endpoint(one.remote.address, 9), one.inode)
        for one in table("published-loopback.proxy.tcp")
    )
    path = decide_path(client, server, frozenset({Endpoint("127.0.0.1", 32792)}), (Proxy(PROXY, others),))
    assert path is not None
    assert path.hop is None


def test_connections_that_go_different_ways_have_no_one_path() -> None:
    bridged, nated = sides("bridge"), sides("published-address")
    both = [Side(a.namespace, a.connections + b.connections) for a, b in zip(bridged, nated, strict=True)]
    dialled = frozenset({Endpoint("172.22.0.2", 5432), Endpoint("172.21.0.1", 32768)})
    path = decide_path(both[0], both[1], dialled, ())
    assert path is not None
    assert path.hop is None
    assert path.connections == 2


def test_listening_sockets_are_no_connections() -> None:
    assert [one.remote.port for one in table("bridge.server.tcp")] == [53646]


def test_addresses_of_both_families_are_read() -> None:
    heading = (DATA / "bridge.client.tcp").read_text().splitlines()[0]
    row = "0: {}:1538 {}:D18E 01 0:0 00:0 0 900 0 77 1 0 20 0 0 10 -1"
    mapped = "0000000000000000FFFF0000020016AC"
    six = "B80D0120000000000000000001000000"
    connections = parse_tcp("\n".join([heading, row.format(mapped, mapped), row.format(six, six)]))
    assert [one.local for one in connections] == [Endpoint("172.22.0.2", 5432), Endpoint("2001:db8::1", 5432)]
    assert connections[0].inode == 77


def test_a_connection_that_the_kernel_lists_again_counts_once() -> None:
    heading, row = (DATA / "bridge.client.tcp").read_text().splitlines()[:2]
    accepted = row.split()
    accepted[9] = "0"
    (one,) = parse_tcp("\n".join([heading, " ".join(accepted), row, row]))
    assert one.inode == int(row.split()[9])


@pytest.mark.parametrize(("name", "hop"), [("passt.avx2", Hop.PASTA), ("rootlessport", Hop.ROOTLESSPORT)])
def test_a_port_that_is_the_clients_by_chance_is_still_the_carriers(name: str, hop: Hop) -> None:
    """The kernel counts ports of both loopbacks up from one place, so that two of 16 were the same."""
    port = Endpoint("127.0.0.1", 21_000)
    outer = [Endpoint("127.0.0.1", 40_000 + number) for number in range(16)]
    inner = [outer[3], outer[5], *(Endpoint("127.0.0.1", 50_000 + number) for number in range(14))]
    client = tuple(Connection(each, port, 100 + number) for number, each in enumerate(outer))
    front = tuple(Connection(port, each, 200 + number, 990) for number, each in enumerate(outer))
    back = tuple(Connection(each, port, 300 + number) for number, each in enumerate(inner))
    server = tuple(Connection(port, each, 400 + number) for number, each in enumerate(inner))
    carrier = Proxy(PROXY, front, name, inside=back)
    path = decide_path(Side("1", client), Side("2", server), frozenset({port}), (carrier,))
    assert path is not None
    assert (path.hop, path.connections, path.proxy) == (hop, 16, PROXY)
    assert path.carrier is not None
    assert (path.carrier.name, path.carrier.user, path.carrier.namespace) == (name, 990, "1")


def test_a_control_group_of_others_may_have_any_name() -> None:
    mounts = (DATA.parent / "mountinfo-cgroup-hybrid.txt").read_bytes()
    files = {"/proc/self/mountinfo": mounts, "/proc/7/cgroup": b"0::/caf\xe9\n"}
    assert members(FakeHost(files=files), 7) == [7]
