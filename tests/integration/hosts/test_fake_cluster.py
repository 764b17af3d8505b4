"""A cluster of three small servers, each on a test host of its own, with its client on a fourth; no engine.

Fakes have no control group by which their sockets are told from others': paths are `test_cluster_hosts`' business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from tests.integration.hosts.test_fake_pair import machine_of_fakes, plan_of_one_run
from tests.unit.record.parts import as_tree

from tare.record.run_record import Phase, RunRecord
from tare.run.attempt.server import Server
from tare.run.events import Event, PhaseStarted
from tare.run.execute import Destination, execute
from tare.run.resume import StudyState
from tools import hosts
from tools.lab import TestHost

pytestmark = pytest.mark.root

NODES = ["sut-1", "sut-2", "sut-3"]


def made(
    there: tuple[TestHost, ...],
    below: Path,
    *,
    retries: int = 0,
    meanwhile: Callable[[Event], None] = lambda _: None,
) -> list[RunRecord]:
    """All attempts at one run; what is left in the ledger fails the test."""
    plan, staging = plan_of_one_run(nodes=3, retries=retries), below / "staging"
    staging.mkdir()
    with ExitStack() as stack:
        machine = machine_of_fakes(plan, there, below / "home", stack)
        destination = Destination(str(staging), StudyState(), staging)
        records = [record for kept in execute(plan, machine, destination, meanwhile) for record in kept]
        assert [entry.ident for entry in machine.ledger.entries() if not entry.keep] == []
    for host in there:
        assert hosts.ssh(host, "ls", "/var/lib/tare/work").stdout == ""
    return records


@dataclass(frozen=True)
class OneRun:
    """A run that was made, on four hosts that are still there."""

    there: tuple[TestHost, ...]
    below: Path
    record: RunRecord


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneRun]:
    below = tmp_path_factory.mktemp("one-run")
    with hosts.made(4) as there:
        (record,) = made(there, below)
        yield OneRun(there, below, record)


def test_each_node_has_a_host_and_all_of_it_is_in_the_record(one_run: OneRun) -> None:
    record = one_run.record
    assert record.outcome.reason is None
    *servers, client = one_run.there
    nodes = dict(record.nodes or {})
    assert list(nodes) == NODES
    assert [node.on for node in nodes.values()] == [host.name for host in servers]
    assert [node.address for node in nodes.values()] == [host.measured for host in servers]
    assert all(node.host and node.host.kernel for node in nodes.values())

    between = record.between
    assert between is not None
    asked = {(link.asks, link.answers) for link in between.links}
    one, two, three = (host.name for host in servers)
    assert asked == {(client.name, two), (client.name, three), (two, one), (three, one), (three, two)}
    for link in between.links:
        assert link.after is not None
        assert abs(link.after.clocks.offset_s) <= link.after.clocks.bound_s
        assert link.route.device == "wire0"
        assert link.throughput.to_sut > 1e6
    assert set(between.sides or {}) == {"sut", "sut-2", "sut-3", "client"}
    assert between.one_boot is True

    assert set(record.monitors or {}) == {"probe", "sut-2-host", "sut-3-host", "client-host"}
    usage = as_tree(record.usage)
    assert list(usage["machines"]) == [host.name for host in servers]
    assert usage["machine"] in usage["machines"].values()  # of one kernel, which is counted once


def test_the_trace_of_each_nodes_host_comes_home_with_its_node(one_run: OneRun) -> None:
    record = one_run.record
    raw = one_run.below / "staging" / f"{record.run_id}-{record.attempt}"
    for trace, node in (("probe", "sut-1"), ("sut-2-host", "sut-2"), ("sut-3-host", "sut-3")):
        names = set(pl.read_parquet(raw / "monitors" / trace / "trace" / "process.parquet")["name"])
        assert {name for name in names if name.startswith("sut")} == {node}
    assert {f"{node}.command.json" for node in NODES} <= set(record.raw)


def test_each_host_keeps_the_data_of_its_node_and_all_are_of_one_load(one_run: OneRun) -> None:
    snapshot = one_run.record.snapshot
    assert snapshot is not None
    assert sorted(snapshot.parts) == ["1", "2", "3"]
    *servers, client = one_run.there
    for number, host in enumerate(servers, 1):
        (home,) = hosts.ssh(host, "ls", "/var/lib/tare/snapshots").stdout.split()
        assert home.startswith(snapshot.key)
        assert hosts.ssh(host, "ls", f"/var/lib/tare/snapshots/{home}/data").stdout.split() == [str(number)]
        described = json.loads(hosts.ssh(host, "cat", f"/var/lib/tare/snapshots/{home}/snapshot.json").stdout)
        assert described["load"] == snapshot.load
    assert hosts.ssh(client, "ls", "/var/lib/tare/snapshots", check=False).stdout == ""


@pytest.mark.slow
def test_a_part_that_is_gone_has_all_loaded_anew(four: tuple[TestHost, ...], tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (before,) = made(four, tmp_path / "one")
    hosts.ssh(four[1], "rm", "-r", "/var/lib/tare/snapshots")
    (after,) = made(four, tmp_path / "two")
    assert after.outcome.ok
    assert before.snapshot is not None
    assert after.snapshot is not None
    assert after.snapshot.key == before.snapshot.key
    assert after.snapshot.load != before.snapshot.load


def test_a_node_that_dies_on_its_host_is_one_failed_run_with_its_name(
    four: tuple[TestHost, ...], tmp_path: Path, servers: list[Server]
) -> None:
    killed: list[str] = []

    def kill(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is Phase.MEASURE and not killed:
            second = next(each for each in reversed(servers) if each.node.name == "sut-2")
            killed.append(second.host.name)
            second.host.run(["kill", "-s", "KILL", "--", f"-{second.instance.process.pid}"], timeout_s=60)

    first, again = made(four, tmp_path, retries=1, meanwhile=kill)
    assert killed == [four[1].name]
    assert "node sut-2" in str(first.outcome.reason)
    assert again.outcome.ok
