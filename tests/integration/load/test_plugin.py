"""The workload tare-load on a real server of each kind: loaded, warmed up and measured as a study does it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import make_lab

from tare.sites.engine import connect

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TIMES: dict[str, Any] = {"warmup_s": 0.3, "measure_s": 0.6, "window_s": 0.2, "connections": 2}
SYSBENCH: dict[str, Any] = {"sysbench": {"script": "oltp_read_only", "tables": 2, "table_size": 500}}
YCSB: dict[str, Any] = {
    "ycsb": {"core_workload": "f", "records": 300, "properties": {"dataintegrity": True, "fieldcount": 3}}
}
EVERYTHING: dict[str, Any] = {
    "ycsb": {
        "records": 300,
        "operations": 500,
        "properties": {
            "readproportion": 0.3,
            "updateproportion": 0.2,
            "insertproportion": 0.1,
            "scanproportion": 0.2,
            "readmodifywriteproportion": 0.2,
            "requestdistribution": "latest",
            "maxscanlength": 20,
        },
    }
}
SERVERS: dict[str, dict[str, Any]] = {
    "mariadb": {},
    "mysql": {"database": "mysql", "server": {"innodb_buffer_pool_size": "32M"}},
    "postgresql-15": {"database": "postgresql", "server": {}},
    "redis-7": {"database": "redis", "server": {"save": "", "appendonly": "no"}},
    "cassandra-3.11": {"database": "cassandra", "server": {"heap": "256M"}},
    "ferretdb-2": {"database": "ferretdb", "server": {"shared_buffers": "64MB"}},
}


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.mark.parametrize(
    ("image", "work"),
    [
        ("mariadb", SYSBENCH),
        ("mariadb", YCSB),
        ("mysql", SYSBENCH),
        ("postgresql-15", SYSBENCH),
        ("postgresql-15", EVERYTHING),
        ("redis-7", EVERYTHING),
        ("cassandra-3.11", YCSB),
        ("ferretdb-2", EVERYTHING),
    ],
    ids=lambda given: given if isinstance(given, str) else next(iter(given)),
)
def test_it_loads_and_drives_a_real_server(
    image: str, work: dict[str, Any], engine: DockerClient, tmp_path: Path
) -> None:
    if image.startswith("ferretdb") and which("go") is None and os.environ.get("CI") != "true":
        pytest.skip("FerretDB is built by a Go toolchain")
    lab = make_lab(engine, tmp_path / "home", "tare-load", "tare-load", image, **SERVERS[image])
    with lab.run(lab.settings("container", "bare", **work, **TIMES)) as run:
        measured = run.measure(tmp_path)
    assert measured.done > 20
    assert measured.errors == 0
    assert {kind for kind, figures in measured.by_operation.items() if figures.operations} == set(
        measured.by_operation
    )
    if work is EVERYTHING:
        assert measured.operations == 500
