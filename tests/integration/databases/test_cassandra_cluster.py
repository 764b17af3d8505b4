"""Three nodes of Cassandra as one SUT, really: formed, loaded, drained, copied, formed again elsewhere, measured.

Heaps of 256 MiB, with which a node has some 450 MiB resident. A dozen JVMs start for one run, so it takes minutes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import DatabaseLab, LabRun, make_lab

from tare.analyze.views.summary import views_of_run
from tare.databases.cassandra.chronicle import CassandraEvents
from tare.databases.cassandra.nodetool import nodetool, parse_status
from tare.run.monitoring.chronicle import ask_all
from tare.sites.engine import connect
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind
from tare.sites.process import from_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import open_store
from tare.study.model import ArmSettings
from tare.study.values import NetworkKind

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(3600)]

IMAGE = "cassandra-3.11"
SETTINGS = {"heap": "256M", "num_tokens": 16}
ASKED: dict[str, Any] = {
    "command": "mixed",
    "ratio": {"read": 3, "write": 1},
    "records": 300,
    "replication": 3,
    "consistency": "QUORUM",
    "threads": 4,
    "measure_s": 5,
}
YCSB: dict[str, Any] = {
    "core_workload": "a",
    "records": 300,
    "threads": 4,
    "measure_s": 5,
    "properties": {
        "cassandra.replicationfactor": 3,
        "cassandra.readconsistencylevel": "QUORUM",
        "cassandra.writeconsistencylevel": "QUORUM",
    },
}
NODES = 3
PLACES = [("bare", NetworkKind.HOST), ("container", NetworkKind.BRIDGE)]
NODE, CLIENT = "CassandraDaemon", "stress.Stress"
PATIENCE_S = 1500
"""Some twenty JVMs start one after the other (to load, to run, to be asked) beside whatever else goes on."""

STUDY = """
format: 1
name: ring
question: Does it run?
sut:
  {image: cassandra-3.11, database: cassandra, deployment: bare, nodes: 3, settings: {heap: 256M, num_tokens: 16}}
client: {image: cassandra-3.11, deployment: bare}
workload:
  {name: cassandra-stress, command: mixed, records: 300, replication: 3, consistency: QUORUM, threads: 4,
   measure_s: 30, window_s: 1}
protocol: {name: fixed, blocks: 1, retries: 0, seed: 1, control: false}
factors:
  load:
    sets: workload.threads
    levels: [4, 5]
baseline: load-4
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture(scope="module")
def lab(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> DatabaseLab:
    if which("mvn") is None and os.environ.get("CI") != "true":
        pytest.skip("Cassandra's distribution is fetched by mvn (apt-get install maven)")
    home = tmp_path_factory.mktemp("home")
    return make_lab(engine, home, "cassandra-stress", IMAGE, IMAGE, database="cassandra", server=SETTINGS)


@pytest.fixture(scope="module")
def ycsb(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> DatabaseLab:
    home = tmp_path_factory.mktemp("home")
    return make_lab(engine, home, "ycsb", "ycsb", IMAGE, database="cassandra", server=SETTINGS)


def settings(lab: DatabaseLab, deployment: str, network: NetworkKind, asked: Mapping[str, Any]) -> ArmSettings:
    alone = lab.settings(deployment, "bare", **asked)
    sut = alone.sut.model_copy(update={"nodes": NODES, "network": network})
    return alone.model_copy(update={"sut": sut})


def assert_is_one_ring(run: LabRun, table: str) -> None:
    """As each node sees it; and every row of the three replicas is at each.

    Counted in one SSTable: the estimate counts a row that was updated after the load in a second one too.
    """
    addresses = {server.instance.address for server in run.sut.servers}
    assert len(addresses) == NODES
    for server in run.sut.servers:
        states = parse_status(nodetool(server.plan, server.inside, ("status",), 120.0).text)
        assert states == dict.fromkeys(addresses, "UN"), server.node.name
        for verb in ("flush", "compact"):
            done = nodetool(server.plan, server.inside, (verb, "tare"), 120.0)
            assert done.code == 0, done.stderr
    asked = ask_all(run.sut, CassandraEvents(), run.bench.machine.clock, 0.0)
    assert asked.notices == ()
    for name, told in asked.of_nodes.items():
        assert told is not None
        assert told.tables is not None
        assert told.tables[table]["number_of_partitions_estimate"] == pytest.approx(300, rel=0.2), name


@pytest.mark.parametrize(("deployment", "network"), PLACES)
def test_three_nodes_are_one_database(
    deployment: str, network: NetworkKind, lab: DatabaseLab, tmp_path: Path
) -> None:
    """The second deployment starts from a copy of what the first one loaded, at other addresses."""
    with lab.run(settings(lab, deployment, network, ASKED)) as run:
        effective = run.sut.effective()
        assert list(effective) == ["sut-1", "sut-2", "sut-3"]
        for node in effective.values():
            assert "-Xmx256M" in node["jvm.arguments"]
            assert node["auto_bootstrap"] == "false"
        found = run.measure(tmp_path)
        assert_is_one_ring(run, "tare.standard1")
    assert found.errors == 0
    assert found.done > 0


@pytest.mark.parametrize(("deployment", "network"), PLACES)
def test_ycsb_drives_three_nodes(deployment: str, network: NetworkKind, ycsb: DatabaseLab, tmp_path: Path) -> None:
    """It is told of all nodes, and speaks to each: none of them is idle."""
    with ycsb.run(settings(ycsb, deployment, network, YCSB)) as run:
        found = run.measure(tmp_path)
        asked = ask_all(run.sut, CassandraEvents(), run.bench.machine.clock, 0.0)
        assert_is_one_ring(run, "tare.usertable")
    assert (set(found.by_operation), found.errors) == ({"read", "update"}, 0)
    for name, told in asked.of_nodes.items():
        assert told is not None
        assert told.pools is not None
        done: Any = told.pools["Native-Transport-Requests"]["CompletedTasks"]
        assert done > found.done / NODES / 4, name


def test_a_node_killed_while_it_is_measured_fails_the_run_with_its_name_and_leaves_nothing(
    lab: DatabaseLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole processes: `tare run`, a kill of the third node in the first run's measure phase, the record."""
    home = lab.machine.layout.home
    study, store = tmp_path / "study.yaml", tmp_path / "store"
    study.write_text(STUDY)
    _link_images(home)
    monkeypatch.setenv("TARE_HOME", str(home))
    argv = [sys.executable, "-m", "tare", "run", str(study), "--store", str(store)]
    with (tmp_path / "stderr").open("wb") as stderr:
        running = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        _wait_for(lambda: len(_processes(home, NODE)) == NODES and _processes(home, CLIENT) and _measured(home))
        time.sleep(3)
        os.kill(_processes(home, NODE)[2], signal.SIGKILL)
        running.wait(PATIENCE_S)
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGINT)
            running.wait(PATIENCE_S)
    first, *_ = open_store(store).records()
    assert not first.outcome.ok
    reason = str(first.outcome.reason)
    assert "the server was ended by SIGKILL during" in reason
    assert "node sut-3; its last output: " in reason
    assert "\n" not in reason
    nodes = {"sut-1", "sut-2", "sut-3"}
    assert nodes == set(first.nodes or {})
    assert {line.subject for line in views_of_run(open_store(store), first).views.lines} >= nodes
    left = [entry.ident for entry in SqliteLedger(home / "ledger.sqlite").entries() if not entry.keep]
    assert left == []
    assert _processes(home, NODE) == []


def _link_images(home: Path) -> None:
    """The images of the tests' cache, where a TARE_HOME of its own would have to build them again."""
    if not (home / "images").exists():
        (home / "images").symlink_to(default_layout().home / "images")


def _measured(home: Path) -> bool:
    """Whether a measure phase has begun: loading has no client of that name."""
    return any((home / "work").glob("*/raw/measure.command.json"))


def _wait_for(there: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _processes(home: Path, program: str) -> list[int]:
    """Of this test's own tare, by its ledger, in the order of their starts; a Cassandra of somebody else stays."""
    if not (home / "ledger.sqlite").exists():
        return []
    entries = SqliteLedger(home / "ledger.sqlite").entries()
    started = [from_ident(entry.ident) for entry in entries if entry.kind is Kind.PROCESS]
    found = []
    for process in sorted(started, key=lambda process: process.started_ticks):
        path = Path(f"/proc/{process.pid}/cmdline")
        words = path.read_bytes() if path.exists() else b""
        if program.encode() in words:
            found.append(process.pid)
    return found
