"""PostgreSQL under YCSB and sysbench, really: loaded, stopped cleanly, copied, served bare and in a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import DatabaseLab, make_lab

from tare.databases.postgresql.postgresql import execute
from tare.databases.registry import DATABASES
from tare.errors import RunFailed
from tare.run.attempt.loading import ensure_snapshot
from tare.sites.engine import connect
from tare.study.values import NetworkKind

pytestmark = [pytest.mark.engine, pytest.mark.slow]  # its image and its driver take long to make

SETTINGS = {"shared_buffers": "32MB", "synchronous_commit": False, "search_path": '"$user", public'}
YCSB: dict[str, Any] = {
    "core_workload": "a",
    "records": 300,
    "threads": 2,
    "warmup_s": 1,
    "operations": 200,
    "measure_s": 60,
}
SYSBENCH: dict[str, Any] = {
    "script": "oltp_read_write",
    "tables": 2,
    "table_size": 500,
    "threads": 1,
    "measure_s": 2,
}


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture(scope="module")
def lab(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> DatabaseLab:
    return make_lab(
        engine, tmp_path_factory.mktemp("home"), "ycsb", "ycsb", "postgresql-15",
        database="postgresql", server=SETTINGS,
    )  # fmt: skip


def test_ycsb_by_jdbc_bare_and_in_a_container_with_the_same_settings(lab: DatabaseLab, tmp_path: Path) -> None:
    settings = {}
    for sut, network in (("bare", NetworkKind.HOST), ("container", NetworkKind.SHARED)):
        with lab.run(lab.settings(sut, sut, network, **YCSB)) as run:
            settings[sut] = dict(run.server.effective())
            assert run.carry_out("warm-up") == 0
            measurement = run.measure(tmp_path)
            rows = execute(run.server.plan, run.server.inside, "SELECT count(*) FROM usertable").text
        assert set(measurement.by_operation) == {"read", "update"}
        assert measurement.errors == 0
        assert rows.strip() == "300"
    bare, container = settings["bare"], settings["container"]
    assert bare.keys() == container.keys()
    assert {name for name in bare if bare[name] != container[name]} <= DATABASES["postgresql"].per_run
    assert bare["shared_buffers"] == "32MB"
    assert bare["synchronous_commit"] == "off"
    assert bare["search_path"] == SETTINGS["search_path"]
    assert bare["server_version"].startswith("15.")
    assert bare["max_connections"] == "100"


@pytest.mark.slow
def test_accounts(lab: DatabaseLab) -> None:
    """The run's user gets in by its password, over TCP; nobody else does; and a snapshot has no password."""
    settings = lab.settings("bare", "bare", **YCSB)
    with lab.run(settings) as run:
        plan, inside = run.server.plan, run.server.inside
        for user, database in (
            ("postgres", "postgres"),
            ("postgres", "tare"),
            ("tare", "postgres"),
            ("tare", "tare"),
        ):
            at = ("--host=127.0.0.1", f"--port={plan.port}", f"--username={user}", f"--dbname={database}")
            done = inside(("psql", "--no-psqlrc", "--no-password", *at, "--command=SELECT 1"), 10, b"")
            assert done.code != 0
            wanted = b"no password supplied" if (user, database) == ("tare", "tare") else b"no pg_hba.conf entry"
            assert wanted in done.stderr
        run.server.shut_down()
        kept = [path for path in Path(run.bench.workdir.data).rglob("*") if path.is_file()]
        assert kept
        assert not [path for path in kept if plan.secrets.password.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_wrong_setting_ends_the_server_with_its_reason(lab: DatabaseLab) -> None:
    settings = lab.settings("bare", "bare", **YCSB)
    wrong = settings.model_copy(update={"sut": settings.sut.model_copy(update={"settings": {"no_such_thing": 1}})})
    with pytest.raises(RunFailed, match="before it answered its first query"):
        ensure_snapshot(lab.machine, wrong, lab.images)


@pytest.mark.slow
def test_sysbench_drives_it(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    home = tmp_path_factory.mktemp("home")
    lab = make_lab(engine, home, "sysbench", "sysbench", "postgresql-15", database="postgresql", server=SETTINGS)
    with lab.run(lab.settings("bare", "bare", **SYSBENCH)) as run:
        measurement = run.measure(tmp_path)
        at = run.server.plan, run.server.inside
        analysed = execute(*at, "SELECT count(*) FROM pg_stats WHERE tablename = 'sbtest2' AND attname = 'k'").text
    assert measurement.done > 0
    assert measurement.errors == 0
    assert analysed.strip() == "1"
