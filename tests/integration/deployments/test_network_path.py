"""Every kind of network really takes the way that it names, as the kernel's sockets tell."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tare.deployments import Deployment, Endpoint, Instance, Task
from tare.deployments.network.path import observe_path
from tare.record.network_path import Hop, NetworkPath
from tare.sites import Host
from tare.sites.process import alive
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
Connect = Callable[[str, NetworkKind, str, NetworkKind], NetworkPath]

HOST, BRIDGE, SHARED = NetworkKind.HOST, NetworkKind.BRIDGE, NetworkKind.SHARED
LOOPBACK, ADDRESS = NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS
UNTRACKED = NetworkKind.UNTRACKED
DIRECT = [
    ("bare", HOST, "bare", HOST, Hop.LOOPBACK),
    ("bare", HOST, "container", HOST, Hop.LOOPBACK),
    ("bare", UNTRACKED, "bare", SHARED, Hop.LOOPBACK),
    ("container", HOST, "bare", HOST, Hop.LOOPBACK),
    ("container", HOST, "container", HOST, Hop.LOOPBACK),
    ("container", BRIDGE, "bare", HOST, Hop.BRIDGE),
    ("container", BRIDGE, "container", HOST, Hop.BRIDGE),
    ("container", BRIDGE, "container", BRIDGE, Hop.BRIDGE),
    ("container", BRIDGE, "bare", SHARED, Hop.LOOPBACK),
    ("container", BRIDGE, "container", SHARED, Hop.LOOPBACK),
    ("container", ADDRESS, "bare", HOST, Hop.DNAT),
    ("container", ADDRESS, "container", HOST, Hop.DNAT),
]
PROXIED = [(LOOPBACK, "bare", HOST), (LOOPBACK, "container", HOST), (ADDRESS, "container", BRIDGE)]
"""Of a server in a container. With the table above every placement that studies may have of the two deployments, as
tests/unit/study/test_placement.py sees to."""


def free_port(host: Host) -> int:
    used = {line.split()[1].rpartition(b":")[2] for line in (host.read("/proc/net/tcp") or b"").splitlines()[1:]}
    return next(port for port in range(21000, 22000) if b"%04X" % port not in used)


def dialled(server: Instance, client: NetworkKind) -> Endpoint:
    if client is SHARED:
        return Endpoint("127.0.0.1", server.task.port)
    return server.published or Endpoint(server.address, server.task.port)


@pytest.fixture
def connect(bare: Deployment, container: Deployment, make_task: MakeTask, started: Started, host: Host) -> Connect:
    places = {"bare": bare, "container": container}

    def through(server_in: str, server_net: NetworkKind, client_in: str, client_net: NetworkKind) -> NetworkPath:
        port = free_port(host)
        bind = "127.0.0.1" if server_net is HOST else "0.0.0.0"
        serve = ("httpd", "-f", "-p", f"{bind}:{port}", "-h", "/tmp")
        task = make_task(*serve, name="server", network=server_net, port=port)
        server = started(places[server_in], task)
        wait_until_listening(host, server, port)
        place = dialled(server, client_net)
        call = f"sleep 1000 | nc {place.address} {place.port}"
        beside = server if client_net is SHARED else None
        asked = replace(make_task("sh", "-c", call, name="client", network=client_net), beside=beside)
        client = started(places[client_in], asked)
        deadline = time.monotonic() + 60
        while (path := observe_path(host, client, server)) is None or path.hop is None:
            assert time.monotonic() < deadline, path
            assert alive(host, client.process), "the client has ended"
            time.sleep(0.05)
        assert path.client_dialled == place
        assert path.connections == 1
        return path

    return through


def wait_until_listening(host: Host, server: Instance, port: int) -> None:
    deadline = time.monotonic() + 60
    while b":%04X 00000000:0000 0A" % port not in (host.read(f"/proc/{server.process.pid}/net/tcp") or b""):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("server_in", "server_net", "client_in", "client_net", "hop"), DIRECT)
def test_a_network_takes_the_way_it_names(  # noqa: PLR0917 - a row of the table above
    connect: Connect,
    server_in: str,
    server_net: NetworkKind,
    client_in: str,
    client_net: NetworkKind,
    hop: Hop,
) -> None:
    path = connect(server_in, server_net, client_in, client_net)
    assert path.hop is hop
    assert path.proxy is None
    assert (path.client_namespace == path.server_namespace) is (hop is Hop.LOOPBACK)


@pytest.mark.parametrize(("server_net", "client_in", "client_net"), PROXIED)
def test_docker_proxy_is_found_with_the_process_that_carries_the_traffic(
    connect: Connect, host: Host, server_net: NetworkKind, client_in: str, client_net: NetworkKind
) -> None:
    """From a bridge the host's own address is carried by the proxy: no DNAT rule applies to it (moby 20.10-29)."""
    if _no_proxy(host):
        pytest.skip("this engine runs with userland-proxy=false")
    path = connect("container", server_net, client_in, client_net)
    assert path.hop is Hop.DOCKER_PROXY
    assert path.proxy is not None
    assert (host.read(f"/proc/{path.proxy.pid}/comm") or b"").strip() == b"docker-proxy"
    assert path.client_namespace != path.server_namespace


def _no_proxy(host: Host) -> bool:
    return b"userland-proxy=false" in host.run(["ps", "-eo", "args"], timeout_s=60).stdout


@pytest.mark.parametrize("network", [LOOPBACK, ADDRESS, BRIDGE])
def test_nothing_listens_beyond_loopback_and_the_bridge(  # noqa: PLR0917 - fixtures
    container: Deployment,
    make_task: MakeTask,
    started: Started,
    host: Host,
    engine: DockerClient,
    network: NetworkKind,
) -> None:
    before = listening(host)
    server = started(container, make_task("sleep", "1000", name="server", network=network, port=5000))
    new = {place for place in listening(host) - before if server.published and place[1] == server.published.port}
    if network is BRIDGE:
        assert server.published is None
        return
    assert server.published is not None
    bridge = engine.networks.get(server.task.cgroup_parent.replace("/", "-"))
    gateway = bridge.attrs["IPAM"]["Config"][0]["Gateway"]
    expected = "127.0.0.1" if network is LOOPBACK else gateway
    assert server.published.address == expected
    assert new == {(expected, server.published.port)}


def listening(host: Host) -> set[tuple[str, int]]:
    lines = host.run(["ss", "-Hltn"], timeout_s=60).text.splitlines()
    places = [line.split()[3].rpartition(":") for line in lines]
    return {(address.strip("[]"), int(port)) for address, _, port in places}
