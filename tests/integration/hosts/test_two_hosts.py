"""Runs whose server and client stand on two test hosts: by which path, on which clock, and that nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.integration.hosts.namespace_host import NamespaceHost

from tare.errors import StudyError
from tare.images import Image
from tare.images.image_store import ImageStore
from tare.images.prepare import prepare
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.between import Between
from tare.record.network_path import Wire
from tare.record.run_record import RunRecord
from tare.run.between.site import Home, Reached, refuse_between, site_machine
from tare.run.execute import Destination, execute
from tare.run.machine import Machine
from tare.run.resume import StudyState
from tare.sites import Site
from tare.sites.engine import connect
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost, own_process
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.reading.load import loads
from tare.study.registry import installed
from tools import hosts
from tools.lab import TestHost

# The first test also builds both images and brings them to the hosts.
pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

STUDY = """\
format: 1
name: two-hosts
question: By which path does a client on another host reach the server?
sut:
  image: mariadb
  database: mariadb
  deployment: bare
  settings: {{innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M}}
client: {{image: sysbench, deployment: bare, own_host: true}}
workload:
  name: sysbench
  script: oltp_point_select
  tables: 1
  table_size: 1000
  threads: 2
  warmup_s: 1
  measure_s: 6  # a client of two seconds can be over before a busy machine has read its CPU time twice
  window_s: 1
protocol: {{name: fixed, blocks: 1, control: false}}
factors:
  setup:
    sets: [{sets}]
    levels:
{levels}
baseline: {baseline}
"""
SETUPS = {
    "one": "{}",
    "two": "{client.deployment: container, client.network: bridge}",
    "three": "{sut.deployment: container, sut.network: published-address}",
    "four": "{sut.deployment: container, sut.network: published-address, client.deployment: container, "
    "client.network: bridge}",
}


def study_of(*names: str) -> Plan:
    levels = "\n".join(f"      {name}: {SETUPS[name]}" for name in names)
    keys = [f"{side}.{key}" for side in ("sut", "client") for key in ("deployment", "network")]
    sets = ", ".join(key for key in keys if key in levels)
    return expand(loads(STUDY.format(levels=levels, baseline=names[0], sets=sets), installed()))


@pytest.fixture(scope="module")
def site(engine_pair: tuple[TestHost, ...]) -> Iterator[tuple[Site, dict[str, Reached]]]:
    with ExitStack() as stack:
        reached = {}
        for each in engine_pair:
            host = stack.enter_context(closing(NamespaceHost(each)))
            init = hosts.init_of(each)
            engine = stack.enter_context(closing(connect(f"unix:///proc/{init}/root/run/docker.sock")))
            reached[each.name] = Reached(host, Layout(Path("/var/lib/tare")), engine)
        server, client = (reached[each.name].host for each in engine_pair)
        addresses = {each.name: each.measured for each in engine_pair}
        yield Site(server, client, addresses=addresses), reached


def machine_of(plan: Plan, site: tuple[Site, dict[str, Reached]]) -> Machine:
    cache = default_layout()
    ledger = SqliteLedger(cache.ledger)

    def ready(reference: str) -> Image:
        return prepare(reference, host=LocalHost(), layout=cache, ledger=ledger, engine=None)

    return site_machine(plan, *site, Home(ready, ImageStore(cache, ledger), ledger))


def made(machine: Machine, plan: Plan, staging: Path) -> dict[str, RunRecord]:
    staging.mkdir(exist_ok=True)
    runs = execute(plan, machine, Destination(str(staging), StudyState(), staging), lambda _: None)
    return {record.arm: record for records in runs for record in records}


@pytest.fixture(scope="module")
def records(
    site: tuple[Site, dict[str, Reached]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, RunRecord], Path]:
    plan, staging = study_of(*SETUPS), tmp_path_factory.mktemp("staging")
    return made(machine_of(plan, site), plan, staging), staging


Made = tuple[dict[str, RunRecord], Path]


def test_every_setup_is_measured(records: Made) -> None:
    assert {name: record.outcome for name, record in records[0].items() if not record.outcome.ok} == {}
    assert set(records[0]) == set(SETUPS)


@pytest.mark.parametrize(
    ("setup", "hop", "client_hop"),
    [
        ("one", "wire", None),
        ("two", "wire", "masquerade"),
        ("three", "dnat", None),
        ("four", "dnat", "masquerade"),
    ],
)
def test_the_path_is_proved_from_the_sockets_of_both_hosts(
    setup: str, hop: str, client_hop: str | None, records: Made, engine_pair: tuple[TestHost, ...]
) -> None:
    server, client = engine_pair
    path = records[0][setup].path
    assert path is not None
    assert (path.hop, path.client_hop) == (hop, client_hop)
    assert path.client_dialled is not None
    assert path.client_dialled.address == server.measured
    assert path.server_sees is not None
    assert path.server_sees.address == client.measured
    assert path.wire == Wire(client.name, "wire0", server.name, "wire0")


def test_the_interfaces_counters_show_that_they_carried_the_run(records: Made) -> None:
    for record in records[0].values():
        assert record.between is not None
        sides = record.between.sides or {}
        sent, got = sides["client"].counters or {}, sides["sut"].counters or {}
        assert (sent["tx_packets"] or 0) > 1000
        assert got["rx_packets"] == pytest.approx(sent["tx_packets"], rel=0.05)
        assert sides["sut"].mtu == 1500


def test_the_wire_is_sounded_before_and_after(records: Made) -> None:
    for record in records[0].values():
        between = record.between
        assert between is not None
        assert between.after is not None
        for seen in (between.before, between.after):
            assert 0 < seen.round_trip.least_s <= seen.round_trip.median_s < 0.1
        assert between.throughput is not None
        assert between.throughput.to_sut > 1e6
        assert between.one_boot is True


def test_clocks_that_are_one_are_found_so_within_their_bound(records: Made) -> None:
    for record in records[0].values():
        assert record.between is not None
        assert record.between.after is not None
        for seen in (record.between.before, record.between.after):
            assert abs(seen.clocks.offset_s) <= seen.clocks.bound_s < 0.005


def test_both_hosts_are_traced_whole_each_with_its_own_side(records: Made) -> None:
    kept, staging = records
    for record in kept.values():
        raw = staging / f"{record.run_id}-{record.attempt}" / "monitors"
        names = {
            name: set(pl.read_parquet(raw / name / "trace" / "process.parquet")["name"])
            for name in ("probe", "client-host")
        }
        assert "sut" in names["probe"]
        assert "client" not in names["probe"]
        assert "client" in names["client-host"]
        assert "sut" not in names["client-host"]


def test_the_cpu_time_of_each_side_is_read_on_its_host(records: Made) -> None:
    for record in records[0].values():
        usage = record.usage
        assert usage is not None
        assert (usage.sut_cpu_s or 0) > 0
        assert (usage.client_cpu_s or 0) > 0
        assert (usage.client_machine or {})["user"] > 0
        assert usage.saturation is not None
        assert usage.saturation.client is not None
        assert (usage.saturation.client.busy or 0) > 0
        assert usage.driven is not None
        assert usage.driven.by == "end" or usage.driven.began_monotonic_s > 0


def test_nothing_of_a_run_is_left_on_either_host(records: Made, engine_pair: tuple[TestHost, ...]) -> None:
    for host in engine_pair:
        assert hosts.ssh(host, "docker", "ps", "-aq").stdout == ""
        assert hosts.ssh(host, "docker", "network", "ls", "-q", "--filter", "name=tare").stdout == ""
        assert hosts.ssh(host, "ls", "/var/lib/tare/work").stdout == ""
        assert "tare" not in hosts.ssh(host, "ls", "/sys/fs/cgroup/memory", check=False).stdout
    entries = SqliteLedger(default_layout().ledger).entries()
    assert [entry for entry in entries if not entry.keep and entry.owner == own_process()] == []


def test_a_step_of_a_clock_voids_the_run(
    site: tuple[Site, dict[str, Reached]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = study_of("one", "two")
    machine = machine_of(plan, site)
    assert machine.wire is not None
    whole = machine.wire.after

    def a_tenth_of_a_second_on(between: Between) -> Between:
        seen = whole(between)
        assert seen.after is not None
        clocks = replace(seen.after.clocks, offset_s=seen.after.clocks.offset_s + 0.1)
        return replace(seen, after=replace(seen.after, clocks=clocks))

    monkeypatch.setattr(machine.wire, "after", a_tenth_of_a_second_on)
    record, *_ = made(machine, plan, tmp_path / "staging").values()
    assert not record.outcome.ok
    names = f"{site[0].sut.name} and {site[0].client.name}"
    assert f"the clocks of {names} cannot be aligned" in (record.outcome.reason or "")


def test_what_ends_at_the_host_is_refused_in_one_sentence(
    site: tuple[Site, dict[str, Reached]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETUPS, "near", "{sut.deployment: container, sut.network: published-loopback}")
    monkeypatch.setattr(f"{__name__}.STUDY", STUDY.replace(", own_host: true", ""))
    with pytest.raises(
        StudyError, match="the arm near cannot have its client on another host: from published-loopback"
    ):
        refuse_between(study_of("one", "near"), site[0])
