"""Each monitor at a real container and at a bare task: it samples, its cost is counted, nothing of it is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from docker import DockerClient
from tests.integration.lacking import left_out

from tare.deployments import Deployment, Instance, Task
from tare.monitors import why_unavailable
from tare.monitors.registry import MONITORS
from tare.record.usage import Usage
from tare.run.clock import SystemClock
from tare.run.monitoring.monitors import Monitors
from tare.sites import Host, Site
from tare.sites.ledger import Ledger
from tare.sites.process import alive
from tare.study.model import MonitorSpec

pytestmark = [pytest.mark.engine, pytest.mark.timeout(180)]

LOOP = ("/bin/sh", "-c", "while :; do :; done")
NAMES = ("mpstat", "iostat", "sar", "pidstat", "docker-stats")
MEASURE_S = 3.5


@dataclass
class Watch:
    """The monitors of a run of nothing but a loop."""

    monitors: Monitors
    bench: Any
    parameters: Any
    raw: Path

    def around(self, sut: Instance) -> dict[str, Any]:
        """The record's `monitors` after a measure phase of `MEASURE_S`."""
        self.monitors.begin(self.bench, {"sut": sut}, self.parameters)
        self.monitors.begin_measure(self.bench, self.parameters)
        began = time.monotonic()
        time.sleep(MEASURE_S)
        ended = time.monotonic()
        self.monitors.end_measure()
        self.monitors.end()
        usage = Usage(began_monotonic_s=began, ended_monotonic_s=ended)
        return dict(self.monitors.read(self.raw, usage))


@pytest.fixture
def watch(host: Host, ledger: Ledger, tmp_path: Path) -> Watch:
    why = {name: why_unavailable(MONITORS[name], host, 1.0, {}) for name in ("probe", *NAMES)}
    missing = [f"{name}: {reason}" for name, reason in why.items() if reason is not None]
    if missing:
        left_out("; ".join(missing))
    machine: Any = SimpleNamespace(
        site=Site(sut=host, client=host),
        ledger_on=lambda _: ledger,
        clock=SystemClock(),
        monitors=MONITORS,
        parts={},
    )
    raw = tmp_path / "raw"
    raw.mkdir()
    settings = SimpleNamespace(monitors=dict.fromkeys(NAMES, MonitorSpec()))
    room = SimpleNamespace(host=host, raw=str(raw))
    bench = SimpleNamespace(workdir=room, client_workdir=None, settings=settings, storages={host.name: ()})
    parameters = SimpleNamespace(warmup_s=0.0, measure_s=MEASURE_S, cooldown_s=0.0)
    return Watch(Monitors(machine), bench, parameters, raw)


def test_every_monitor_watches_a_container(
    watch: Watch, container: Deployment, make_task: Callable[..., Task], ledger: Ledger
) -> None:
    sut = container.start(make_task(*LOOP))
    try:
        summaries = watch.around(sut)
    finally:
        watch.monitors.end()
        container.stop(sut, 1.0)
    for name in NAMES:
        assert summaries[name].cpu_s is not None, summaries[name]
        assert summaries[name].samples >= 3
        kept = pl.read_parquet(watch.raw / "monitors" / f"{name}.parquet").filter("kept")
        assert 2 <= kept["to_ns"].n_unique() <= 4
    assert summaries["docker-stats"].daemon_cpu_s > 0
    assert summaries["probe"].samples > 10 * MEASURE_S
    assert not [entry for entry in ledger.entries() if entry.kind == "process"]
    trace = watch.raw / "monitors" / "probe" / "trace"
    seen = set(pl.read_parquet(trace / "process.parquet")["name"].cast(pl.String))
    assert {"sut", "shim", "tare"} <= seen
    assert "sut" in set(pl.read_parquet(trace / "cgroup.parquet")["name"].cast(pl.String))


def test_docker_stats_and_pidstat_say_the_same_of_a_loop(
    watch: Watch, container: Deployment, make_task: Callable[..., Task]
) -> None:
    """Roughly: what the views test says closely. Both are percent of one CPU."""
    sut = container.start(make_task(*LOOP))
    try:
        watch.around(sut)
    finally:
        watch.monitors.end()
        container.stop(sut, 1.0)
    means = {}
    for name in ("docker-stats", "pidstat"):
        table = pl.read_parquet(watch.raw / "monitors" / f"{name}.parquet")
        wanted = pl.col("kept") & (pl.col("quantity") == "cpu_percent") & pl.col("subject").str.starts_with("sut")
        values = table.filter(wanted)["value"].to_numpy()
        means[name] = float(values.mean()) if len(values) else 0.0
    assert means["docker-stats"] > 5
    assert means["pidstat"] == pytest.approx(means["docker-stats"], rel=0.5)


def test_a_bare_task_has_no_docker_stats_and_all_else(
    watch: Watch, bare: Deployment, make_task: Callable[..., Task]
) -> None:
    sut = bare.start(make_task(*LOOP))
    try:
        summaries = watch.around(sut)
    finally:
        watch.monitors.end()
        bare.stop(sut, 1.0)
    assert "nothing to watch" in summaries["docker-stats"].absent
    assert all(summaries[name].samples is not None for name in NAMES if name != "docker-stats")


def test_cadvisor_and_its_prometheus_watch_a_bare_task_and_leave_nothing(
    watch: Watch, bare: Deployment, make_task: Callable[..., Task], host: Host, ledger: Ledger
) -> None:
    lacks = why_unavailable(MONITORS["cadvisor"], host, 1.0, {})
    if lacks is not None:
        pytest.skip(lacks)  # in no package and no registry: CADVISOR=PATH
    watch.bench.settings.monitors = {"cadvisor": MonitorSpec()}
    sut = bare.start(make_task(*LOOP))
    try:
        summaries = watch.around(sut)
    finally:
        watch.monitors.end()
        bare.stop(sut, 1.0)
    assert summaries["cadvisor"].cpu_s > 0
    assert summaries["cadvisor"].samples >= 3
    kept = pl.read_parquet(watch.raw / "monitors" / "cadvisor.parquet").filter("kept")
    assert kept.filter(quantity="cpu_cores_irate")["value"].to_numpy().max() > 0.05
    assert not (watch.raw / "monitors" / "cadvisor" / "tsdb").exists()
    assert not [entry for entry in ledger.entries() if entry.kind == "process"]


def test_monitors_that_are_told_to_end_leave_no_process(
    watch: Watch, bare: Deployment, make_task: Callable[..., Task], host: Host, engine: DockerClient
) -> None:
    """Not even those that they themselves started, as sar does."""
    sut = bare.start(make_task(*LOOP))
    try:
        watch.monitors.begin(watch.bench, {"sut": sut}, watch.parameters)
        watch.monitors.begin_measure(watch.bench, watch.parameters)
        started = [process for each in watch.monitors.running.values() for _, process in each.running.values()]
        watch.monitors.end()
    finally:
        watch.monitors.end()
        bare.stop(sut, 1.0)
    assert len(started) == 5
    assert not [process for process in started if alive(host, process)]
    groups = {str(process.pid) for process in started}
    left = [path for path in Path("/proc").glob("[0-9]*/stat") if _group(path) in groups]
    assert not left


def _group(stat: Path) -> str:
    """Of a process that has not ended; whoever adopts an orphan may take a while to reap it."""
    try:
        state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return ""
    return "" if state in "ZX" else group
