"""Cassandra 5.0, really: loaded, drained, copied, served bare and in a container, driven and asked what it did."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import DatabaseLab, make_lab

from tare.databases.cassandra.chronicle import CassandraEvents
from tare.databases.cassandra.nodetool import nodetool
from tare.databases.registry import DATABASES

pytestmark = [pytest.mark.engine, pytest.mark.slow]

IMAGE, DATABASE = "cassandra-5.0", "cassandra-5"
SETTINGS = {"heap": "384M", "key_cache_size": "0MiB", "concurrent_reads": 16}
YCSB: dict[str, Any] = {"core_workload": "a", "records": 300, "threads": 2, "target": 100, "measure_s": 5}
STRESS: dict[str, Any] = {"command": "mixed", "records": 300, "threads": 4, "fixed": 100, "measure_s": 5}


@pytest.fixture(scope="module")
def lab(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> DatabaseLab:
    home = tmp_path_factory.mktemp("home")
    return make_lab(engine, home, "ycsb", "ycsb", IMAGE, database=DATABASE, server=SETTINGS)


def test_it_serves_bare_and_in_a_container_with_the_same_settings(lab: DatabaseLab, tmp_path: Path) -> None:
    settings = {}
    for deployment in ("bare", "container"):
        with lab.run(lab.settings(deployment, "bare", **YCSB)) as run:
            settings[deployment] = run.server.effective()
            (tmp_path / deployment).mkdir()
            measurement = run.measure(tmp_path / deployment)
        assert (set(measurement.by_operation), measurement.errors) == ({"read", "update"}, 0)
        assert measurement.latency.timed_from == "intended-send"
    bare, container = settings["bare"], settings["container"]
    assert {name for name in bare if bare[name] != container.get(name)} <= DATABASES[DATABASE].per_run
    assert (bare["concurrent_reads"], bare["key_cache_size"], bare["num_tokens"]) == ("16", "0MiB", "16")
    assert bare["cassandra.version"].startswith("5.0.")
    assert "-Xmx384M" in bare["jvm.arguments"]
    assert bare["jvm.version"].startswith("OpenJDK 64-Bit Server VM/17.")
    assert int(bare["jvm.processors"]) >= 1
    assert bare["in_force.key_cache_capacity"].startswith("0 ")
    assert "table.tare.usertable.compaction" in bare


def test_cassandra_stress_of_3_11_drives_it(
    engine: DockerClient, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    home = tmp_path_factory.mktemp("home")
    lab = make_lab(engine, home, "cassandra-stress", "cassandra-3.11", IMAGE, database=DATABASE, server=SETTINGS)
    with lab.run(lab.settings("bare", "bare", **STRESS)) as run:
        measurement = run.measure(tmp_path)
    assert (set(measurement.by_operation), measurement.errors) == ({"read", "write"}, 0)
    assert sum(count for _, count in measurement.histogram) == measurement.operations
    assert measurement.latency.timed_from == "intended-send"


def test_it_tells_of_its_compactions_tables_and_pools(lab: DatabaseLab, tmp_path: Path) -> None:
    with lab.run(lab.settings("bare", "bare", **YCSB)) as run:
        server, began = run.server, time.time()
        run.measure(tmp_path)
        for words in (("flush", "tare"), ("compact", "tare")):
            done = nodetool(server.plan, server.inside, words, 60.0)
            assert done.code == 0, done.stderr
        events = CassandraEvents().tell(server.plan, server.inside)
    (event,) = [event for event in events.events if event.ended_at >= began]
    assert event.name == "tare.usertable"
    assert event.began_at is not None
    assert began <= event.began_at <= event.ended_at <= time.time()
    assert min(event.read_bytes, event.written_bytes) > 0
    assert events.tables["tare.usertable"]["local_write_count"]
    assert "CompactionExecutor" in events.pools
    assert "MUTATION_REQ" in events.dropped
