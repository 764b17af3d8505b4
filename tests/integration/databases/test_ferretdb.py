"""FerretDB and YCSB, really: loaded, stopped, copied, served bare and in a container, and measured."""

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

from tare.databases.registry import DATABASES
from tare.errors import RunFailed
from tare.sites.engine import connect
from tare.study.values import NetworkKind

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SETTINGS = {"shared_buffers": "64MB", "synchronous_commit": False}
ASKED: dict[str, Any] = {
    "core_workload": "a",
    "records": 200,
    "threads": 2,
    "warmup_s": 1,
    "operations": 200,
    "measure_s": 60,
}


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture(scope="module")
def lab(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> DatabaseLab:
    if which("go") is None and os.environ.get("CI") != "true":
        pytest.skip("FerretDB is built by a Go toolchain")
    home = tmp_path_factory.mktemp("home")
    return make_lab(engine, home, "ycsb", "ycsb", "ferretdb-2", database="ferretdb", server=SETTINGS)


def test_ycsb_bare_and_in_a_container_with_the_same_settings(lab: DatabaseLab, tmp_path: Path) -> None:
    asked = {**ASKED, "properties": {"mongodb.writeConcern": "journaled", "mongodb.readPreference": "primary"}}
    settings = {}
    for sut, network in (("bare", NetworkKind.HOST), ("container", NetworkKind.SHARED)):
        with lab.run(lab.settings(sut, sut, network, **asked)) as run:
            settings[sut] = dict(run.server.effective())
            assert run.carry_out("warm-up") == 0
            measurement = run.measure(tmp_path)
        assert set(measurement.by_operation) == {"read", "update"}
        assert measurement.errors == 0
    bare, container = settings["bare"], settings["container"]
    assert bare.keys() == container.keys()
    assert {name for name in bare if bare[name] != container[name]} <= DATABASES["ferretdb"].per_run
    assert (bare["server.name"], bare["server.version"]) == ("FerretDB", "v2.7.0")
    assert bare["server.protocol"].startswith("7.0.")
    assert bare["shared_buffers"] == "64MB"
    assert bare["synchronous_commit"] == "off"


def test_scans_and_inserts_find_and_keep_what_they_should(lab: DatabaseLab, tmp_path: Path) -> None:
    mix = {"scanproportion": 0.5, "insertproportion": 0.5, "readproportion": 0, "updateproportion": 0}
    asked = {
        **ASKED,
        "properties": {**mix, "requestdistribution": "uniform", "maxscanlength": 10},
        "operations": 100,
        "measure_s": 60,
    }
    del asked["core_workload"]
    with lab.run(lab.settings("bare", "bare", **asked)) as run:
        measurement = run.measure(tmp_path)
    assert set(measurement.by_operation) == {"scan", "insert"}
    assert measurement.errors == 0


def test_one_of_the_two_programs_that_dies_takes_the_other_with_it(lab: DatabaseLab) -> None:
    with lab.run(lab.settings("bare", "bare", **ASKED)) as run:
        server = run.server
        pid = server.instance.process.pid
        programs = {
            Path(f"/proc/{child}/comm").read_text().strip(): int(child)
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        }
        assert set(programs) == {"postgres", "ferretdb"}
        os.kill(programs["ferretdb"], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while server.lives and time.monotonic() < deadline:
            time.sleep(0.1)
        with pytest.raises(RunFailed, match="while it was watched"):
            server.must_live("while it was watched")
        assert not Path(f"/proc/{programs['postgres']}").exists()
