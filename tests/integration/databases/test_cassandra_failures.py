"""What goes wrong between Cassandra and its clients: a failed run, its reason in one line, nothing left."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from tests.integration.runs.failing import assert_told, filled, first_run, signalled

from tare.databases.cassandra.nodetool import nodetool
from tare.run.attempt.server import Server

pytestmark = [pytest.mark.engine, pytest.mark.slow]

STUDY = """
format: 1
name: failing
question: What becomes of a run in which something fails?
sut:
  {{image: cassandra-3.11, database: cassandra, deployment: {deployment}, network: host, storage: {storage},
   settings: {{heap: 256M}}}}
client: {{image: {client}, deployment: bare, network: host}}
workload: {workload}
protocol: {{name: fixed, blocks: 1, retries: 0, control: false}}
factors:
  cache: {{sets: sut.settings.key_cache_size_in_mb, levels: {{none: 0, some: 8}}}}
baseline: none
"""
CLIENTS = {"cassandra-stress": "cassandra-3.11", "ycsb": "ycsb"}
ASKED: dict[str, dict[str, Any]] = {
    "cassandra-stress": {"command": "read", "records": 300, "threads": 4},
    "ycsb": {"core_workload": "c", "records": 300, "threads": 4},
}
NO_NODE = {"cassandra-stress": "All host(s) tried", "ycsb": "READ ERROR"}
INTO_IT_S = 8.0
"""When a client's JVM has started and works, on a busy machine too."""


def study(workload: str, *, deployment: str = "bare", storage: str = "{}", **asked: Any) -> str:
    options = {**ASKED[workload], "measure_s": 12, "window_s": 1, **asked}
    words = ", ".join(f"{name}: {value}" for name, value in {"name": workload, **options}.items())
    return STUDY.format(deployment=deployment, storage=storage, client=CLIENTS[workload], workload=f"{{{words}}}")


@pytest.mark.parametrize(
    ("workload", "deployment"), [("cassandra-stress", "bare"), ("ycsb", "bare"), ("ycsb", "container")]
)
def test_a_server_that_is_killed(workload: str, deployment: str, servers: list[Server], tmp_path: Path) -> None:
    harm = signalled(servers, signal.SIGKILL)
    record = first_run(study(workload, deployment=deployment), tmp_path, harm, INTO_IT_S)
    assert_told(record, "the server was ended by SIGKILL", "during measure")


@pytest.mark.parametrize("workload", list(CLIENTS))
def test_a_server_that_stands_still_to_the_end(workload: str, servers: list[Server], tmp_path: Path) -> None:
    """Every operation under way waits for a time limit: the client's, or in the end that of the phase."""
    harm = signalled(servers, signal.SIGSTOP)
    record = first_run(study(workload), tmp_path, harm, INTO_IT_S)
    assert_told(record)
    assert not Path(f"/proc/{servers[-1].instance.process.pid}").exists()


@pytest.mark.parametrize("workload", list(CLIENTS))
def test_a_client_whose_connections_are_cut(workload: str, servers: list[Server], tmp_path: Path) -> None:
    def cut() -> None:
        server = servers[-1]
        done = nodetool(server.plan, server.inside, ("disablebinary",), 60.0)
        assert done.code == 0, done.stderr

    record = first_run(study(workload, measure_s=30), tmp_path, cut, INTO_IT_S)
    assert_told(record, NO_NODE[workload])


@pytest.mark.parametrize(
    ("workload", "asked"),
    [
        ("cassandra-stress", {"population": "uniform(1..3000)"}),
        ("ycsb", {"records": 3000, "properties": "{insertcount: 300}"}),
    ],
)
def test_reads_that_find_nothing(workload: str, asked: dict[str, Any], tmp_path: Path) -> None:
    """Most of the keys that are asked for were never loaded."""
    assert_told(first_run(study(workload, **asked), tmp_path), "NOT_FOUND" if workload == "ycsb" else "validated")


def test_a_disk_that_is_full(servers: list[Server], tmp_path: Path) -> None:
    """Cassandra maps the segments of its commit log: one that cannot be written is the JVM's end, by SIGBUS."""
    storage = "{kind: block, size: 512M, file_system: ext4}"
    text = study("cassandra-stress", storage=storage, command="write", column_bytes=4000, measure_s=60)
    assert_told(
        first_run(text, tmp_path, filled(servers), INTO_IT_S), "SIGBUS", "the file system of its data has 0 of"
    )
