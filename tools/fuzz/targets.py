"""What is fuzzed: each target makes an input from a seed and has tare read it, which may end in a `TareError`."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from ruamel.yaml import YAML

from tare.cli.study.plan import as_json
from tare.errors import StoreError
from tare.imports import load_mapping
from tare.knowledge.claim import load_claim
from tare.monitors import MonitorContext, WatchedProcess
from tare.monitors.registry import BUILT_IN as MONITORS
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate
from tare.plan.expand import expand
from tare.run.unreadable import read_or_failed
from tare.sites.fake import FakeHost
from tare.store import open_store, verify
from tare.store.repair import repair
from tare.store.trace import read_trace
from tare.study.catalogue import claims_folder, studies
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.workloads import Parameters
from tare.workloads.registry import BUILT_IN as WORKLOADS
from tools.fuzz import mutations

REPOSITORY = Path(__file__).parents[2]
DATA = REPOSITORY / "tests" / "data"
Case = Callable[[Random, Path], object]
"""Takes a source of chance and an empty directory. Whatever it raises that is no `TareError` is a finding."""


def _as_text(tree: Any) -> str:
    """As YAML that is JSON, which keeps whatever a tree holds."""
    return json.dumps(tree).replace("NaN", ".nan").replace("Infinity", ".inf")


@cache
def _yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


def study(chance: Random, place: Path) -> object:  # noqa: ARG001 - a target's
    """Shipped studies, changed as trees or as texts; what is read makes a plan that can be told."""
    path = chance.choice(sorted(studies().values()))
    if chance.random() < 0.8:
        text = _as_text(mutations.tree(_yaml(path), chance))
    else:
        text = mutations.text(path.read_text(), chance)
    plan = expand(loads(text, installed(), file="study.yaml"))
    return json.dumps(as_json(plan, estimate(plan, data_sets(WORKLOADS))), allow_nan=False)


def claim(chance: Random, place: Path) -> object:
    """Shipped claims."""
    source = chance.choice(sorted(claims_folder().glob("**/*.yaml")))
    return load_claim(_file(place / "claim.yaml", source, chance))


def mapping(chance: Random, place: Path) -> object:
    """The shipped mapping of an import."""
    return load_mapping(
        _file(place / "import.yaml", REPOSITORY / "studies" / "grambow-2018" / "import.yaml", chance)
    )


def _file(target: Path, source: Path, chance: Random) -> Path:
    if chance.random() < 0.7:
        changed = _as_text(mutations.tree(_yaml(source), chance))
    else:
        changed = mutations.text(source.read_text(), chance)
    target.write_text(changed, encoding="utf-8", errors="surrogatepass")
    return target


_PARAMETERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sysbench": ("sysbench", {"measure_s": 4.0}),
    "sysbench-cpu": ("sysbench-builtin", {"measure_s": 4.0}),
    "sysbench-fileio": ("sysbench-builtin", {"measure_s": 4.0, "file_test_mode": "rndrw"}),
    "ycsb": ("ycsb", {"measure_s": 4.0}),
    "cassandra-stress": ("cassandra-stress", {"measure_s": 4.0}),
    "fio": ("fio", {"measure_s": 4.0, "rw": "randread"}),
}
"""Workload → the folder with outputs that it has left, and its parameters."""


def generator(chance: Random, place: Path) -> object:
    """What load generators printed and wrote in real runs."""
    name = chance.choice(sorted(_PARAMETERS))
    folder, given = _PARAMETERS[name]
    workload = WORKLOADS[name]
    stem = chance.choice(sorted((DATA / folder).glob("*.stdout"))).stem
    for source in sorted((DATA / folder).glob(f"{stem}.*")):
        left = source.read_bytes().decode("utf-8", "replace")
        changed = mutations.text(left, chance) if chance.random() < 0.7 else left
        target = place / f"measure.{source.name.removeprefix(f'{stem}.')}"
        target.write_text(changed, encoding="utf-8", errors="surrogatepass")
    errors = place / "measure.stderr"
    errors.touch()
    parameters: Parameters = workload.parameters.model_validate(dict(given))
    with read_or_failed("its output"):
        return workload.parse(parameters, place / "measure.stdout", errors, chance.choice((0, 0, 0, 1)))


_WATCHED = (
    WatchedProcess("sut", 2879, own_cgroup=True, container_id="c0ffee"),
    WatchedProcess("dockerd", 5788),
)


def monitor(chance: Random, place: Path) -> object:
    """What monitors left."""
    name = chance.choice(("mpstat", "iostat", "sar", "pidstat", "docker-stats"))
    for source in sorted((DATA / "monitors").glob(f"{name}.*")):
        shutil.copyfile(source, place / source.name)
    changed = chance.choice(sorted(place.iterdir()))
    if changed.suffix == ".json" and chance.random() < 0.5:
        changed.write_text(json.dumps(mutations.tree(json.loads(changed.read_text()), chance)))
    else:
        changed.write_text(mutations.text(changed.read_text(), chance), encoding="utf-8", errors="surrogatepass")
    scene = MonitorContext(FakeHost(), "/run/m", interval_s=1.0, most_s=100.0, watched=_WATCHED)
    with read_or_failed("its output"):
        return MONITORS[name].read(scene, place)


def trace(chance: Random, place: Path) -> object:
    """tare-probe's tables and their header."""
    shutil.copytree(DATA / "trace", place / "trace")
    changed = chance.choice(sorted((place / "trace").glob("*.parquet")) + [place / "trace" / "trace.json"] * 6)
    if changed.suffix == ".json" and chance.random() < 0.8:
        changed.write_text(json.dumps(mutations.tree(json.loads(changed.read_text()), chance)))
    else:
        changed.write_bytes(mutations.binary(changed.read_bytes(), chance))
    return read_trace(place / "trace")


@cache
def _golden() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript((REPOSITORY / "tests" / "golden" / "store-4" / "store.sql").read_text())
        return database.serialize()


def store(chance: Random, place: Path) -> object:
    """Stores with damaged pages, records and plans: read, verified and repaired."""
    where = place / "store"
    for folder in ("raw", "staging"):
        (where / folder).mkdir(parents=True)
    (where / "lock").touch()
    database = where / "store.sqlite"
    if chance.random() < 0.5:
        database.write_bytes(mutations.binary(_golden(), chance))
    else:
        database.write_bytes(_golden())
        _spoil_rows(database, chance)
    try:
        opened = open_store(where)
        verify(opened)
        opened.endings()
    except StoreError:
        pass
    return repair(where, place / "new")


def _spoil_rows(path: Path, chance: Random) -> None:
    table, column = chance.choice((("runs", "record"), ("facts", "body"), ("study", "plan"), ("endings", "body")))
    with closing(sqlite3.connect(path)) as database, database:
        rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        if not rows:
            return
        number, body = chance.choice(rows)
        tree = json.dumps(mutations.tree(json.loads(body), chance)).encode("utf-8", "replace").decode()
        database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (tree, number))


TARGETS: Mapping[str, Case] = {
    "study": study, "claim": claim, "mapping": mapping, "generator": generator, "monitor": monitor, "trace": trace,
    "store": store,
}  # fmt: skip
