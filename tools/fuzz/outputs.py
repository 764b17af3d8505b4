"""What other programs left: load generators, monitors and tare-probe."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from tare.analyze.views.summary import read_samples
from tare.errors import StudyError
from tare.monitors import MonitorContext, WatchedProcess
from tare.monitors.profile.stacks import read_profile
from tare.monitors.registry import BUILT_IN as MONITORS
from tare.run.unreadable import read_or_failed
from tare.sites.fake import FakeHost
from tare.store.trace import read_trace
from tare.workloads import Parameters
from tare.workloads.registry import BUILT_IN as WORKLOADS
from tare.workloads.tare_load.parameters import read_trace as read_arrivals
from tools.fuzz import mutations
from tools.fuzz.documents import Accepted

DATA = Path(__file__).parents[2] / "tests" / "data"

_JOB: Mapping[str, Any] = {
    "generators": {"id": {"uniform": {"from": 0, "to": 999}}, "value": {"text": {"length": 100}}},
    "operations": [
        {"name": "get", "weight": 9.0, "steps": [{"send": "GET key:{id}", "expect": {"bytes": 100}}]},
        {"name": "set", "steps": [{"send": "SET key:{id} {value}"}]},
    ],
    "load": {"records": 1000, "steps": [{"send": "SET key:{record} {value}"}]},
}
"""By which the outputs in tests/data/tare-load were made."""
_PARAMETERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sysbench": ("sysbench", {"measure_s": 4.0}),
    "sysbench-cpu": ("sysbench-builtin", {"measure_s": 4.0}),
    "sysbench-fileio": ("sysbench-builtin", {"measure_s": 4.0, "file_test_mode": "rndrw"}),
    "ycsb": ("ycsb", {"measure_s": 4.0}),
    "cassandra-stress": ("cassandra-stress", {"measure_s": 4.0}),
    "fio": ("fio", {"measure_s": 4.0, "rw": "randread"}),
    "tare-load": ("tare-load", {"job": _JOB, "measure_s": 2.0, "warmup_s": 0.5, "window_s": 0.5, "connections": 4}),
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
    rate = {"rate": 2000.0} if name == "tare-load" and stem == "open" else {}
    parameters: Parameters = workload.parameters.model_validate_json(json.dumps({**given, **rate}))
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


def cadvisor(chance: Random, place: Path) -> object:
    """What a Prometheus told of a cAdvisor."""
    series = json.loads((DATA / "monitors" / "cadvisor" / "prometheus.json").read_text())
    (place / "prometheus.json").write_text(json.dumps(mutations.tree(series, chance)))
    scene = MonitorContext(FakeHost(), "/run/m", interval_s=1.0, most_s=100.0, watched=_WATCHED)
    with read_or_failed("its output"):
        return MONITORS["cadvisor"].read(scene, place)


def trace(chance: Random, place: Path) -> object:
    """tare-probe's tables and their header."""
    shutil.copytree(DATA / "trace", place / "trace")
    changed = chance.choice(sorted((place / "trace").glob("*.parquet")) + [place / "trace" / "trace.json"] * 6)
    if changed.suffix == ".json" and chance.random() < 0.8:
        changed.write_text(json.dumps(mutations.tree(json.loads(changed.read_text()), chance)))
    else:
        changed.write_bytes(mutations.binary(changed.read_bytes(), chance))
    return read_trace(place / "trace")


def profile(chance: Random, place: Path) -> object:
    """A profile of stacks."""
    content = (DATA / "explain" / "nat.parquet").read_bytes()
    (place / "profile.parquet").write_bytes(mutations.binary(content, chance))
    return read_profile(place / "profile.parquet")


def samples(chance: Random, place: Path) -> object:
    """A table of a monitor's samples, which stands in a store."""
    source = chance.choice(sorted((DATA / "rate").glob("*/*.parquet")))
    (place / "samples.parquet").write_bytes(mutations.binary(source.read_bytes(), chance))
    return read_samples(place / "samples.parquet")


_ARRIVALS = "".join(f"{number / 10},{'get' if number % 3 else 'set'}\n" for number in range(200))


@cache
def _arrivals() -> bytes:
    file = io.BytesIO()
    pl.read_csv(io.StringIO(f"at_s,operation\n{_ARRIVALS}")).write_parquet(file)
    return file.getvalue()


def arrivals(chance: Random, place: Path) -> object:
    """A user's arrivals for tare-load, in CSV or Parquet."""
    head = chance.choice(("", "at_s,operation\n"))
    kind = chance.random()
    given = place / ("arrivals.csv" if kind < 0.6 else "arrivals.parquet")
    if kind < 0.4:
        given.write_text(mutations.text(head + _ARRIVALS, chance), encoding="utf-8", errors="surrogatepass")
    else:
        given.write_bytes(mutations.binary((head + _ARRIVALS).encode() if kind < 0.6 else _arrivals(), chance))
    try:
        read = read_arrivals(given)
    except ValueError as error:
        if str(given) not in str(error):
            raise
        raise StudyError(str(error)) from error
    times = [one[0] if isinstance(one, tuple) else one for one in read]
    if odd := next((each for each in times if not 0 <= each < 1e9), None):
        raise Accepted(f"an arrival at {odd}")
    return read
