"""A user's own YCSB: a directory as YCSB's distribution has it, copied into an image, before real servers.

Its bindings are in no registry: classes under their names, which make no table either, stand for them.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import make_lab

from tare.images.prepare import prepare
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SOURCES = Path(__file__).parents[2] / "data" / "own-ycsb"
FOLDERS = {"jdbc-binding": "JdbcDBClient", "cassandra-binding": "CassandraCQLClient"}
CORE = ("core-0.17.0", "HdrHistogram", "htrace-core4", "jackson-")
RECIPE = """
format: 1
suite: bookworm
packages: [openjdk-17-jre-headless]
users:
  - {name: me, uid: 1500}
directories:
  - {path: /run/tare, owner: me}
trees:
  - {source: ycsb-0.17.0, path: /opt/mine}
user: me
entrypoint: [java]
"""
ASKED: dict[str, Any] = {
    "home": "/opt/mine",
    "core_workload": "a",
    "records": 300,
    "threads": 2,
    "target": 100,
    "measure_s": 3,
}
SERVERS: dict[str, dict[str, Any]] = {
    "mariadb": {},
    "cassandra-3.11": {"database": "cassandra", "server": {"heap": "256M"}},
}


def distribution(jars: Path, target: Path, scratch: Path) -> None:
    """`lib` has YCSB's core, and the folder of each binding has the binding and what it needs."""
    for jar in sorted(jars.glob("*.jar")):
        folders = ["lib"] if jar.name.startswith(CORE) else [f"{folder}/lib" for folder in FOLDERS]
        for folder in folders:
            (target / folder).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(jar, target / folder / jar.name)
    for folder, name in FOLDERS.items():
        classes = scratch / folder
        argv = ["javac", "--release", "17", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCES / f"{name}.java")]
        subprocess.run(argv, check=True, timeout=120)
        with zipfile.ZipFile(target / folder / "lib" / f"{folder}-0.17.0.jar", "w") as packed:
            path = f"site/ycsb/db/{name}.class"
            packed.writestr(zipfile.ZipInfo(path), (classes / path).read_bytes())


@pytest.fixture(scope="module")
def recipe(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    cache, place = default_layout(), tmp_path_factory.mktemp("own")
    ycsb = prepare("ycsb", host=LocalHost(), layout=cache, ledger=SqliteLedger(cache.ledger), engine=engine)
    distribution(Path(ycsb.rootfs) / "opt" / "ycsb" / "lib", place / "ycsb-0.17.0", place)
    (place / "own.yaml").write_text(RECIPE)
    return str(place / "own.yaml")


@pytest.mark.parametrize("image", list(SERVERS))
def test_it_loads_and_drives_a_real_server(image: str, recipe: str, engine: DockerClient, tmp_path: Path) -> None:
    lab = make_lab(engine, tmp_path / "home", "ycsb", recipe, image, **SERVERS[image])
    for client in ("bare", "container"):
        with lab.run(lab.settings("bare", client, **ASKED)) as run:
            out = tmp_path / client
            out.mkdir()
            measurement = run.measure(out)
        assert (set(measurement.by_operation), measurement.errors) == ({"read", "update"}, 0)
        assert measurement.latency.timed_from == "intended-send"
