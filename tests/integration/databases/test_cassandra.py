"""Cassandra and cassandra-stress, really: loaded, drained, copied, served bare and in a container, and measured."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import DatabaseLab, make_lab

from tare.databases.cassandra.chronicle import CassandraEvents
from tare.databases.cassandra.nodetool import nodetool
from tare.errors import RunFailed
from tare.sites.engine import connect
from tare.study.values import NetworkKind

pytestmark = [pytest.mark.engine, pytest.mark.slow]

IMAGE = "cassandra-3.11"
SETTINGS = {"heap": "256M", "key_cache_size_in_mb": 0, "concurrent_reads": 16}
ASKED: dict[str, Any] = {
    "command": "mixed",
    "ratio": {"read": 3, "write": 1},
    "records": 500,
    "threads": 4,
    "fixed": 100,
    "compaction": "LeveledCompactionStrategy",
    "warmup_s": 2,
    "measure_s": 4,
}


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


@pytest.mark.parametrize(
    ("sut", "client", "network"),
    [
        ("bare", "bare", NetworkKind.HOST),
        ("container", "container", NetworkKind.HOST),
        ("container", "container", NetworkKind.SHARED),
    ],
)
def test_rows_are_loaded_and_the_mix_is_measured(
    sut: str, client: str, network: NetworkKind, lab: DatabaseLab, tmp_path: Path
) -> None:
    with lab.run(lab.settings(sut, client, network, **ASKED)) as run:
        effective = run.server.effective()
        assert run.carry_out("warm-up") == 0
        measurement = run.measure(tmp_path)
        run.server.shut_down()
    assert effective["concurrent_reads"] == "16"
    assert effective["key_cache_size_in_mb"] == "0"
    assert effective["jvm.arguments"].count("-Xmx") == 1
    assert "-Xmx256M" in effective["jvm.arguments"]
    assert "LeveledCompactionStrategy" in effective["table.tare.standard1.compaction"]
    assert effective["cassandra.version"] == "3.11.2"
    assert set(measurement.by_operation) == {"read", "write"}
    assert sum(each.done for each in measurement.by_operation.values()) == measurement.operations
    assert measurement.errors == 0
    assert 50 < (measurement.throughput_per_s or 0) < 110
    assert measurement.latency.timed_from == "intended-send"
    assert measurement.latency.mean_ms
    assert sum(count for _, count in measurement.histogram) == measurement.operations  # by the log that it left
    assert measurement.latency.resolution
    for each in measurement.by_operation.values():
        assert sum(count for _, count in each.histogram) == each.operations
        assert each.service_time is not None
        assert each.service_time.timed_from == "actual-send"
    assert measurement.windows


def test_it_tells_of_its_compactions_tables_pools_and_processors(lab: DatabaseLab, tmp_path: Path) -> None:
    """A compaction is asked for, so that there is one; its log and its history have to tell of the same."""
    asked = {**ASKED, "command": "write", "fixed": None, "compaction": None, "warmup_s": 0, "measure_s": 6}
    with lab.run(lab.settings("bare", "bare", **asked)) as run:
        server, began = run.server, time.time()
        processors = int(server.effective()["jvm.processors"])
        run.measure(tmp_path)
        for words in (("flush", "tare"), ("compact", "tare")):
            assert nodetool(server.plan, server.inside, words, 60.0).code == 0
        chronicle = CassandraEvents().tell(server.plan, server.inside)
    assert 1 <= processors <= (os.cpu_count() or 1)
    events = [event for event in chronicle.events if event.ended_at >= began]
    assert {event.name for event in events} == {"tare.standard1"}
    for event in events:
        assert event.began_at is not None
        assert began <= event.began_at <= event.ended_at <= time.time()
        assert event.read_bytes > 0
        assert event.written_bytes > 0
    assert chronicle.tables["tare.standard1"]["local_write_count"]
    assert "CompactionExecutor" in chronicle.pools
    assert "MUTATION" in chronicle.dropped


def test_processors_seen_bare_and_in_a_container_are_told(lab: DatabaseLab) -> None:
    """They may differ where limits do, as a JVM goes by what it finds of its cgroup; parity has to know of it."""
    seen = {}
    for deployment in ("bare", "container"):
        with lab.run(lab.settings(deployment, "bare", **ASKED)) as run:
            seen[deployment] = run.server.effective()["jvm.processors"]
    assert set(seen.values()) <= {str(n) for n in range(1, (os.cpu_count() or 1) + 1)}


def test_a_node_that_dies_fails_the_run_with_its_reason(lab: DatabaseLab, tmp_path: Path) -> None:
    with lab.run(lab.settings("bare", "bare", **{**ASKED, "warmup_s": 0, "measure_s": 8})) as run:
        client, command = run.start("measure")
        time.sleep(6)
        os.kill(run.server.instance.process.pid, signal.SIGKILL)
        code = client.wait(run.bench.machine.clock, command.timeout_s, lambda: None)
        client.stop()
        with pytest.raises(RunFailed, match="cassandra-stress") as error:
            run.parse(code, tmp_path)
    assert "\n" not in error.value.what


def test_ycsb_drives_it_by_cql(
    engine: DockerClient, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    home = tmp_path_factory.mktemp("home")
    lab = make_lab(engine, home, "ycsb", "ycsb", IMAGE, database="cassandra", server=SETTINGS)
    asked: dict[str, Any] = {"core_workload": "a", "records": 300, "threads": 2, "measure_s": 5}
    with lab.run(lab.settings("bare", "bare", **asked)) as run:
        assert "table.tare.usertable.compaction" in run.server.effective()
        measurement = run.measure(tmp_path)
    assert set(measurement.by_operation) == {"read", "update"}
    assert measurement.errors == 0
