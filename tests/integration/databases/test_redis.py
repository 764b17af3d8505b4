"""Redis, Valkey and YCSB, really: loaded, saved, copied, served bare and in a container, and measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import DatabaseLab, make_lab

from tare.databases.registry import DATABASES
from tare.errors import RunFailed
from tare.run.attempt.loading import ensure_snapshot
from tare.sites.engine import connect
from tare.study.values import NetworkKind

pytestmark = [pytest.mark.engine, pytest.mark.slow]  # two JVMs a run; MariaDB goes the same way by JDBC

ASKED: dict[str, Any] = {
    "core_workload": "a",
    "records": 300,
    "threads": 2,
    "warmup_s": 1,
    "operations": 200,
    "measure_s": 60,
}
IN_MEMORY = {"save": "", "appendonly": False, "maxmemory": "64mb"}
LOGGED = {"save": "900 1 300 10", "appendonly": True, "appendfsync": "always"}


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


def lab_with(
    engine: DockerClient, home: Path, server: dict[str, Any], database: str = "redis", image: str = "redis-7"
) -> DatabaseLab:
    return make_lab(engine, home, "ycsb", "ycsb", image, database=database, server=server)


@pytest.mark.parametrize(("database", "image"), [("redis", "redis-7"), ("valkey", "valkey-8")])
def test_ycsb_bare_and_in_a_container_with_the_same_settings(
    database: str, image: str, engine: DockerClient, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    lab = lab_with(engine, tmp_path_factory.mktemp("home"), IN_MEMORY, database, image)
    settings = {}
    for sut, network in (("bare", NetworkKind.HOST), ("container", NetworkKind.SHARED)):
        with lab.run(lab.settings(sut, sut, network, **ASKED)) as run:
            settings[sut] = dict(run.server.effective())
            assert run.carry_out("warm-up") == 0
            measurement = run.measure(tmp_path)
        assert set(measurement.by_operation) == {"read", "update"}
        assert measurement.errors == 0
    bare, container = settings["bare"], settings["container"]
    assert bare.keys() == container.keys()
    assert {name for name in bare if bare[name] != container[name]} <= DATABASES[database].per_run
    assert (bare["save"], bare["appendonly"], bare["maxmemory"]) == ("", "no", str(64 << 20))
    assert "requirepass" not in bare


def test_data_are_kept_by_the_log_of_commands_too_and_scans_find_them(
    engine: DockerClient, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    lab = lab_with(engine, tmp_path_factory.mktemp("home"), LOGGED)
    mix = {"scanproportion": 0.5, "insertproportion": 0.5, "readproportion": 0, "updateproportion": 0}
    asked = {
        **ASKED,
        "properties": {**mix, "requestdistribution": "uniform", "redis.timeout": 60_000},
        "operations": 200,
        "measure_s": 30,
    }
    del asked["core_workload"]
    with lab.run(lab.settings("bare", "bare", **asked)) as run:
        effective = run.server.effective()
        measurement = run.measure(tmp_path)
        plan, inside = run.server.plan, run.server.inside
        at = ("redis-cli", "-h", "127.0.0.1", "-p", str(plan.port))
        refused = inside((*at, "PING"), 10, b"")
        counted = inside(at, 10, f"AUTH {plan.secrets.password}\nZCARD _indices\n".encode())
        run.server.shut_down()
        kept = [path for path in Path(run.bench.workdir.data).rglob("*") if path.is_file()]
        assert kept
        assert not [path for path in kept if plan.secrets.password.encode() in path.read_bytes()]
    assert (effective["save"], effective["appendonly"], effective["appendfsync"]) == (
        "900 1 300 10",
        "yes",
        "always",
    )
    assert measurement.errors == 0
    assert "NOAUTH" in refused.text
    assert int(counted.text.split()[-1]) == 300 + measurement.by_operation["insert"].done


def test_a_wrong_setting_ends_the_server(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> None:
    lab = lab_with(engine, tmp_path_factory.mktemp("home"), {"no-such-thing": 1})
    with pytest.raises(RunFailed, match="before it answered its first query"):
        ensure_snapshot(lab.machine, lab.settings("bare", "bare", **ASKED), lab.images)
