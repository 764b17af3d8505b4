"""What YCSB loads `tare-load` reads, and the other way round: same keys, same fields, same contents."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import LabRun, make_lab

from tare.sites.engine import connect
from tare.workloads.ycsb.bindings import SCHEMA

pytestmark = [pytest.mark.engine, pytest.mark.slow]  # three JVMs a server

RECORDS = 300
SHARED: dict[str, Any] = {"dataintegrity": "true", "fieldcount": 3, "fieldlength": 64}
EVERYTHING = {
    "readproportion": 0.3,
    "updateproportion": 0.2,
    "insertproportion": 0.1,
    "scanproportion": 0.2,
    "readmodifywriteproportion": 0.2,
    "requestdistribution": "latest",
    "maxscanlength": 20,
}
ASKED: dict[str, Any] = {
    "properties": {**SHARED, **EVERYTHING},
    "records": RECORDS,
    "threads": 2,
    "operations": 400,
    "measure_s": 60,
}
KINDS = {"read", "update", "insert", "scan", "read-modify-write"}
IN_MEMORY = {"save": "", "appendonly": "no"}


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


def tare_load(run: LabRun, scratch: Path, command: str, *more: str) -> dict[str, Any]:
    """The document of one call, which must end well."""
    secrets, port = run.server.plan.secrets, run.server.plan.port
    password = scratch / "password"
    password.write_text(secrets.password)
    password.chmod(0o600)
    program = Path(sysconfig.get_path("scripts")) / "tare-load"
    open_to_all = "mongodb" in more  # FerretDB is started without authentication
    login = () if open_to_all else ("--password-file", str(password))
    argv = [str(program), command, "--address", f"127.0.0.1:{port}", *login, "--connections", "4", *more]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def properties(**more: object) -> list[str]:
    """Those of the study, as `tare-load` takes them."""
    properties = {"recordcount": RECORDS, **SHARED, **EVERYTHING, **more}
    return [word for name, value in properties.items() for word in ("-p", f"{name}={value}")]


def assert_transactions_go_well(run: LabRun, scratch: Path, *server: str, **more: object) -> int:
    """All kinds, and no failure; how many were inserted."""
    document = tare_load(run, scratch, "run", *server, *properties(**more), "--operations", "2000")
    measure = document["measure"]
    assert (measure["right"], measure["failed"], measure["errors"]) == (2000, 0, [])
    right = {kind["name"]: kind["right"] for kind in measure["kinds"]}
    assert set(right) == KINDS
    inserted: int = right["insert"]
    return inserted


def assert_all_are_loaded(run: LabRun, scratch: Path, *server: str) -> None:
    loaded = tare_load(run, scratch, "load", *server, *properties())["measure"]
    assert (loaded["right"], loaded["failed"]) == (RECORDS, 0)


def assert_ycsb_reads_it(run: LabRun, out: Path) -> None:
    """Its transactions compare contents, as `dataintegrity` has it."""
    out.mkdir()
    measurement = run.measure(out)
    assert (set(measurement.by_operation), measurement.errors) == (KINDS, 0)


def redis(run: LabRun, *words: str) -> Sequence[str]:
    """What redis-cli prints for one command, a value a line."""
    at = ("redis-cli", "-h", "127.0.0.1", "-p", str(run.server.plan.port))
    asked = f"AUTH {run.server.plan.secrets.password}\n{' '.join(words)}\n"
    lines: list[str] = run.server.inside(at, 20, asked.encode()).text.splitlines()
    return lines[1:]


def in_redis(run: LabRun) -> dict[str, dict[str, str]]:
    """Some of the records that the index knows, each with its score, and all of their keys."""
    index = iter(redis(run, "ZRANGE", "_indices", "0", "-1", "WITHSCORES"))
    stored = {key: {"": score} for key, score in zip(index, index, strict=True)}
    for key in list(stored)[:20]:
        fields = iter(redis(run, "HGETALL", key))
        stored[key] |= dict(zip(fields, fields, strict=True))
    return stored


def test_redis(engine: DockerClient, tmp_path: Path) -> None:
    lab = make_lab(engine, tmp_path / "home", "ycsb", "ycsb", "redis-7", database="redis", server=IN_MEMORY)
    with lab.run(lab.settings("bare", "bare", **ASKED)) as run:
        by_ycsb = in_redis(run)
        assert len(by_ycsb) == RECORDS
        assert_transactions_go_well(run, tmp_path, "--protocol", "redis")
        redis(run, "FLUSHALL")
        assert_all_are_loaded(run, tmp_path, "--protocol", "redis")
        assert in_redis(run) == by_ycsb
        assert_ycsb_reads_it(run, tmp_path / "measured")


@dataclass(frozen=True)
class Case:
    """A server whose records lie in a table, or a collection."""

    lab: Mapping[str, Any]
    protocol: str
    to_empty: str


CASES = {
    "postgresql-15": Case({"database": "postgresql", "server": {}}, "postgresql", "TRUNCATE usertable"),
    "cassandra-3.11": Case(
        {"database": "cassandra", "server": {"heap": "256M"}}, "cql", f"TRUNCATE {SCHEMA}.usertable"
    ),
    "ferretdb-2": Case(
        {"database": "ferretdb", "server": {"shared_buffers": "64MB"}}, "mongodb", '{"drop": "usertable"}'
    ),
}
"""By image."""


@pytest.mark.parametrize("image", list(CASES))
def test_tables(image: str, engine: DockerClient, tmp_path: Path) -> None:
    if image.startswith("ferretdb") and which("go") is None and os.environ.get("CI") != "true":
        pytest.skip("FerretDB is built by a Go toolchain")
    case = CASES[image]
    lab = make_lab(engine, tmp_path / "home", "ycsb", "ycsb", image, **case.lab)
    with lab.run(lab.settings("bare", "bare", **ASKED)) as run:
        login = () if case.protocol == "mongodb" else ("--user", run.server.plan.secrets.user)
        server = ("--protocol", case.protocol, *login, "--database", SCHEMA)
        assert_transactions_go_well(run, tmp_path, *server)
        job = tmp_path / "job.json"
        empty = {"name": "empty", "steps": [{"send": case.to_empty}]}
        job.write_text(json.dumps({"format": 1, "operations": [empty]}))
        emptied = tare_load(run, tmp_path, "run", *server, "--job", str(job), "--operations", "1")
        assert emptied["measure"]["failed"] == 0
        assert_all_are_loaded(run, tmp_path, *server)
        assert_ycsb_reads_it(run, tmp_path / "measured")
