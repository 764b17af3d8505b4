"""MariaDB and YCSB by JDBC, really: loaded, measured, and failing with the reason in one line."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import DatabaseLab, make_lab

from tare.errors import RunFailed
from tare.run.attempt.loading import ensure_snapshot
from tare.sites.engine import connect
from tare.study.values import NetworkKind

pytestmark = [pytest.mark.engine, pytest.mark.slow]  # its image takes long; PostgreSQL goes the same way by JDBC

ASKED: dict[str, Any] = {"core_workload": "a", "records": 500, "threads": 2, "warmup_s": 1, "measure_s": 2}


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture(scope="module")
def lab(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> DatabaseLab:
    return make_lab(engine, tmp_path_factory.mktemp("home"), "ycsb", "ycsb")


def test_mysql_is_measured_by_the_same_driver(
    engine: DockerClient, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    home = tmp_path_factory.mktemp("home")
    lab = make_lab(
        engine, home, "ycsb", "ycsb", "mysql", database="mysql", server={"innodb_buffer_pool_size": "32M"}
    )
    with lab.run(lab.settings("bare", "bare", **ASKED)) as run:
        measurement = run.measure(tmp_path)
        assert run.server.effective()["account.plugin"] == "caching_sha2_password"
    assert set(measurement.by_operation) == {"read", "update"}
    assert measurement.errors == 0


@pytest.mark.parametrize(
    ("sut", "client", "network"),
    [
        ("bare", "bare", NetworkKind.HOST),
        ("bare", "container", NetworkKind.HOST),
        ("container", "container", NetworkKind.SHARED),
    ],
)
def test_records_are_loaded_and_the_mix_is_measured(
    sut: str, client: str, network: NetworkKind, lab: DatabaseLab, tmp_path: Path
) -> None:
    with lab.run(lab.settings(sut, client, network, **ASKED, target=200)) as run:
        assert run.carry_out("warm-up") == 0
        measurement = run.measure(tmp_path)
    assert set(measurement.by_operation) == {"read", "update"}
    assert sum(each.done for each in measurement.by_operation.values()) == measurement.operations
    assert sum(count for _, count in measurement.histogram) == measurement.operations
    assert (measurement.errors, measurement.unit) == (0, "operations")
    assert measurement.details["target_per_s"] == 200.0
    rate, lasted_s = measurement.throughput_per_s or 0, measurement.duration_s or 0
    assert rate == pytest.approx(measurement.done / lasted_s)
    assert rate < 220  # the target holds it; how near it comes is the machine's business
    assert measurement.details["delivered_share"] == pytest.approx(rate / 200)
    assert measurement.latency.timed_from == "intended-send"
    read = measurement.by_operation["read"]
    assert read.service_time is not None
    assert read.service_time.mean_ms
    assert read.latency.mean_ms
    assert measurement.windows


def test_a_number_of_operations_is_done_to_the_last_one(lab: DatabaseLab, tmp_path: Path) -> None:
    asked = {**ASKED, "core_workload": "f", "operations": 301, "warmup_s": 0, "measure_s": 30}
    with lab.run(lab.settings("bare", "bare", **asked)) as run:
        measurement = run.measure(tmp_path)
    assert measurement.operations == 301
    assert measurement.latency.blind_to_stalls
    assert "read-modify-write" in measurement.by_operation


def test_scans_and_inserts_find_and_keep_what_they_should(lab: DatabaseLab, tmp_path: Path) -> None:
    mix = {"scanproportion": 0.5, "insertproportion": 0.5, "readproportion": 0, "updateproportion": 0}
    asked = {
        **ASKED,
        "properties": {**mix, "requestdistribution": "uniform", "maxscanlength": 10},
        "operations": 100,
    }
    del asked["core_workload"]
    with lab.run(lab.settings("bare", "bare", **asked)) as run:
        assert run.carry_out("warm-up") == 0
        measurement = run.measure(tmp_path)
        file = f"--defaults-file={run.server.plan.run_dir}/client.cnf"
        query = "--execute=SELECT COUNT(*) FROM tare.usertable"
        count = run.server.inside(["mariadb", file, "--skip-column-names", query], 10, b"")
    assert int(count.text) == 500 + measurement.by_operation["insert"].done


def test_a_server_that_dies_fails_the_run_with_its_reason(lab: DatabaseLab, tmp_path: Path) -> None:
    with lab.run(lab.settings("bare", "bare", **{**ASKED, "measure_s": 4})) as run:
        client, command = run.start("measure")
        time.sleep(2.5)
        os.kill(run.server.instance.process.pid, signal.SIGKILL)
        code = client.wait(run.bench.machine.clock, command.timeout_s, lambda: None)
        client.stop()
        assert code == 0  # whatever happens
        with pytest.raises(RunFailed, match=r"did not succeed .*Operation failed: ") as error:
            run.parse(code, tmp_path)
    assert "\n" not in error.value.what


def test_records_that_are_not_there_fail_the_run(lab: DatabaseLab, tmp_path: Path) -> None:
    """Half of the keys that are asked for were never loaded."""
    loaded = lab.settings("bare", "bare", **ASKED)
    ensure_snapshot(lab.machine, loaded, lab.images)
    with lab.run(loaded) as run:
        more = lab.settings("bare", "bare", **{**ASKED, "core_workload": "c", "records": 1000, "warmup_s": 0})
        object.__setattr__(run.bench, "settings", more)
        with pytest.raises(RunFailed, match="READ NOT_FOUND"):
            run.measure(tmp_path)


def test_a_load_that_fails_says_why(lab: DatabaseLab) -> None:
    asked = {**ASKED, "properties": {"fieldlength": 100_000}, "records": 3}
    with pytest.raises(RunFailed, match="Data too long for column") as error:
        ensure_snapshot(lab.machine, lab.settings("bare", "bare", **asked), lab.images)
    assert "\n" not in error.value.what
