"""Paths that exist only between hosts, proved from both sides: routed bridge, macvlan, docker-proxy alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.integration.hosts import test_two_hosts as two
from tests.integration.hosts.namespace_host import NamespaceHost
from tests.unit.record.parts import received_by

from tare.record.network_path import Hop
from tare.record.run_record import RunRecord
from tare.run.between.site import Reached
from tare.sites import Site
from tare.sites.engine import connect
from tare.sites.layout import Layout
from tools import hosts
from tools.lab import TestHost

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

SETUPS = {
    "plain": "{}",
    "routed": "{sut.deployment: container, sut.network: bridge}",
    "behind": "{sut.deployment: container, sut.network: bridge, client.deployment: container, "
    "client.network: bridge}",
    "own": "{sut.deployment: container, sut.network: macvlan}",
    "proxied": "{sut.deployment: container, sut.network: published-address}",
}
POOL = "172.16.0.0/12"


@pytest.fixture
def setups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two, "SETUPS", SETUPS)


@pytest.fixture
def routed(engine_pair: tuple[TestHost, ...]) -> Iterator[None]:
    """As docs/guides/two-hosts.md says what `bridge` needs; the client's engine has a pool of its own."""
    server, client = engine_pair
    _engine(client, "--default-address-pool", "base=10.99.0.0/16,size=24")
    hosts.ssh(client, "ip", "route", "add", POOL, "via", server.measured)
    hosts.ssh(server, "iptables", "-I", "DOCKER-USER", "-i", "wire0", "-j", "ACCEPT")
    yield
    hosts.ssh(client, "ip", "route", "del", POOL)


def _engine(host: TestHost, *options: str) -> None:
    """Start the host's engine anew, with these options."""
    hosts.ssh(host, "sh", "-c", "'kill $(cat /run/docker.pid); while [ -e /run/docker.pid ]; do sleep 0.1; done'")
    hosts.ssh(host, "sh", "-c", f"'setsid dockerd {' '.join(options)} >>/run/dockerd.log 2>&1 </dev/null &'")
    deadline = time.monotonic() + 60
    while hosts.ssh(host, "docker", "version", check=False).returncode != 0:
        assert time.monotonic() < deadline, "the engine does not answer"
        time.sleep(0.2)


def measured(pair: tuple[TestHost, ...], staging: Path, *names: str) -> dict[str, RunRecord]:
    with ExitStack() as stack:
        reached = {}
        for each in pair:
            host = stack.enter_context(closing(NamespaceHost(each)))
            engine = stack.enter_context(
                closing(connect(f"unix:///proc/{hosts.init_of(each)}/root/run/docker.sock"))
            )
            reached[each.name] = Reached(host, Layout(Path("/var/lib/tare")), engine)
        server, client = (reached[each.name].host for each in pair)
        own = {pair[0].name: f"{pair[0].measured.rpartition('.')[0]}.102/24"}
        site = Site(server, client, addresses={each.name: each.measured for each in pair}, container_addresses=own)
        plan = two.study_of(*names)
        records = two.made(two.machine_of(plan, (site, reached)), plan, staging)
    assert {name: record.outcome.reason for name, record in records.items() if not record.outcome.ok} == {}
    return records


def test_a_container_s_own_address_is_reached_by_a_route(
    setups: None, routed: None, engine_pair: tuple[TestHost, ...], tmp_path: Path
) -> None:
    del setups, routed
    records = measured(engine_pair, tmp_path / "staging", "plain", "routed", "behind")
    paths = {name: path for name, record in records.items() if (path := record.path) is not None}
    assert {name: (path.hop, path.client_hop) for name, path in paths.items()} == {
        "plain": ("wire", None),
        "routed": ("bridge", None),
        "behind": ("bridge", "masquerade"),
    }
    dialled, sees = paths["routed"].client_dialled, paths["routed"].server_sees
    assert dialled is not None
    assert dialled.address.startswith("172.")
    assert sees is not None
    assert sees.address == engine_pair[1].measured


def test_a_container_on_macvlan_is_reached_at_an_address_of_its_own(
    setups: None, engine_pair: tuple[TestHost, ...], tmp_path: Path
) -> None:
    del setups
    records = measured(engine_pair, tmp_path / "staging", "plain", "own")
    path, plain, between = records["own"].path, records["plain"].path, records["own"].between
    assert path is not None
    assert plain is not None
    assert path.hop is Hop.MACVLAN
    assert path.client_dialled is not None
    assert path.client_dialled.address.endswith(".102")
    assert path.server_namespace != plain.server_namespace
    assert between is not None
    assert received_by(between, "sut") > 1000
    assert hosts.ssh(engine_pair[0], "docker", "network", "ls", "-q", "--filter", "driver=macvlan").stdout == ""


def test_without_a_route_the_run_says_so(setups: None, engine_pair: tuple[TestHost, ...], tmp_path: Path) -> None:
    del setups
    with pytest.raises(AssertionError, match=r"the SUT on `bridge` has the address"):
        measured(engine_pair, tmp_path / "staging", "plain", "routed")


def test_docker_proxy_carries_a_published_port_where_the_engine_makes_no_rules(
    setups: None, engine_pair: tuple[TestHost, ...], tmp_path: Path
) -> None:
    """The last one: the engine is left without its rules."""
    del setups
    _engine(engine_pair[0], "--iptables=false")
    records = measured(engine_pair, tmp_path / "staging", "plain", "proxied")
    path = records["proxied"].path
    assert path is not None
    assert path.hop is Hop.DOCKER_PROXY
    assert path.proxy is not None
    assert path.proxy.pid > 1
    assert path.server_sees is not None
    assert path.server_sees.address != engine_pair[1].measured
