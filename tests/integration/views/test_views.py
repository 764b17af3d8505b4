"""The views of a real container's trace agree with what docker stats, mpstat, iostat and pidstat said meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

import polars as pl
import pytest
from docker import DockerClient
from tests.integration.lacking import left_out

from tare.analyze.views.compare import Comparison, compare
from tare.analyze.views.summary import Views, observed, views_of
from tare.images import Image
from tare.monitors import MonitorContext, WatchedProcess, why_unavailable
from tare.monitors.registry import MONITORS
from tare.record.load_time import Span
from tare.record.raw_files import DIRECTORY
from tare.run.clock import SystemClock
from tare.run.monitoring import watch as monitoring
from tare.sites.local import LocalHost, own_process
from tare.sites.marks import LABEL
from tare.sites.process import to_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store.trace import Trace, read_trace
from tare.study.model import MonitorSpec

pytestmark = [pytest.mark.engine, pytest.mark.apart, pytest.mark.timeout(180)]

SECONDS = 6
MIB = 2**20
PERIOD_US = 100_000
TOOLS = ("probe", "mpstat", "iostat", "pidstat", "sar", "docker-stats")
TRACE_S = 0.05
LOOP = "while :; do :; done"
LITTLE = 0.3
"""Of a CPU."""


@dataclass(frozen=True)
class WatchedTrace:
    """One container's trace, and what the real tools said of it."""

    trace: Trace
    observed: pl.DataFrame
    shown: str | None
    """A line of `docker stats --no-stream`, where there is a client."""

    def compared(self) -> dict[tuple[str, str, str], Comparison]:
        comparisons = compare(self.trace, self.observed)
        return {(each.tool, each.quantity, each.subject): each for each in comparisons}

    def delay_ns(self, tool: str) -> int:
        """How late a tool's samples came at worst."""
        return int(max(self.observed.filter(pl.col("tool") == tool)["within_ns"]))

    def views(self) -> Views:
        return views_of(self.trace, 1.0, self.observed)

    def value(self, tool: str, quantity: str, subject: str = "sut") -> float | None:
        lines = self.views().lines
        (line,) = (
            each
            for each in lines
            if (each.view.tool, each.quantity.name, each.subject) == (tool, quantity, subject)
        )
        return line.figures.value


Watch = Callable[..., WatchedTrace]


@pytest.fixture(scope="module")
def watch(engine: DockerClient, host: LocalHost, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Watch:
    """Runs a shell script in a container under the eyes of tare-probe and of the real tools, as a run would.

    A trace takes some 15 s, so tests that ask for the same one share it.
    """

    @cache
    def run(script: str, share: float = 1.0, tools: tuple[str, ...] = TOOLS) -> WatchedTrace:
        tmp_path = tmp_path_factory.mktemp("watched")
        for name in tools:
            lacks = why_unavailable(MONITORS[name], host, 1.0, {})
            assert lacks is None, lacks
        with contained(engine, image, script, share) as sut:
            ledger = SqliteLedger(tmp_path / "ledger.sqlite")
            watches = [at_work(name, host, sut, tmp_path / "raw", ledger) for name in tools]
            with ExitStack() as running:
                for each in watches:
                    each.start()
                    running.callback(each.stop)
                    # The probe first and last, so that its trace reaches beyond the tools' samples.
                    time.sleep(0.5)
                time.sleep(SECONDS)
                shown = client_line(str(sut.container_id))
                for each in reversed(watches):
                    each.fetch_reports()
                    each.stop()
                    time.sleep(0.2)
        for each in watches:
            each.read(tmp_path / "raw", Span(0.0, time.monotonic()))
        assert ledger.entries() == ()
        trace = read_trace(tmp_path / "raw" / DIRECTORY / "probe" / "trace")
        return WatchedTrace(trace, observed(tmp_path / "raw" / DIRECTORY), shown)

    return run


def at_work(name: str, host: LocalHost, sut: WatchedProcess, raw: Path, ledger: SqliteLedger) -> monitoring.Watch:
    """A monitor that looks at one container."""
    scene = MonitorContext(
        host=host,
        directory=str(raw / DIRECTORY / name),
        interval_s=TRACE_S if name == "probe" else 1.0,
        most_s=120.0,
        watched=(sut,),
    )
    return monitoring.Watch(name, MONITORS[name], scene, MonitorSpec(), ledger, SystemClock())


@contextmanager
def contained(engine: DockerClient, image: Image, script: str, share: float) -> Iterator[WatchedProcess]:
    """A container that runs a script, on its own disk, as what a run watches."""
    container = engine.containers.run(
        str(image.engine_id),
        entrypoint=["/bin/sh", "-c"],
        command=[script],
        name=f"tare-test-views-{uuid4().hex[:8]}",
        labels={LABEL: to_ident(own_process())},
        cpu_period=PERIOD_US,
        cpu_quota=round(share * PERIOD_US),
        network_mode="none",
        user="0:0",
        detach=True,
    )
    try:
        container.reload()
        pid = int(container.attrs["State"]["Pid"])
        yield WatchedProcess("sut", pid, own_cgroup=True, tree=True, container_id=str(container.id))
    finally:
        container.remove(force=True, v=True)


def client_line(ident: str) -> str | None:
    """What the client `docker stats` prints of its first two samples; `None` without a client."""
    docker = shutil.which("docker")
    if docker is None:
        return None
    argv = [docker, "stats", "--no-stream", "--no-trunc", "--format", "{{json .}}", ident]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


def table(comparisons: dict[tuple[str, str, str], Comparison]) -> str:
    return "\n".join(
        f"{one.tool} {one.quantity} {one.subject}: real {one.real:.4f}, view {one.view:.4f}, "
        f"should be in {one.low:.4f} to {one.high:.4f}{'' if one.agrees else '  <-- it is not'}"
        for one in comparisons.values()
    )


@pytest.mark.parametrize("share", [LITTLE, pytest.param(0.9, marks=pytest.mark.slow)])
def test_cpu_agrees_with_docker_stats_mpstat_and_pidstat(watch: Watch, share: float) -> None:
    seen = watch(LOOP, share)
    comparisons = seen.compared()
    assert all(one.agrees for one in comparisons.values()), table(comparisons)
    (shell,) = (
        subject for tool, quantity, subject in comparisons if (tool, quantity) == ("pidstat", "cpu_percent")
    )
    docker, pidstat = (
        comparisons["docker-stats", "cpu_percent", "sut"],
        comparisons["pidstat", "cpu_percent", shell],
    )
    assert {("mpstat", name, "all") for name in ("usr", "sys", "iowait", "steal", "idle")} <= set(comparisons)
    assert docker.samples >= SECONDS - 2
    # Not so wide that anything would pass: docs/reference/views.md, Rates, with T >= 7 s, w < 20 ms, d = 0.1 s, the
    # host's, and so g < 0.24 s, and with c = 0.035 s: 200 g/T = 7 points, 2 (g + c)/T = 8 % of the view, and
    # 0.6 points by samples: 10 of 30 %, 15 of 90 %.
    for one in (docker, pidstat):
        if seen.delay_ns(one.tool) < 20_000_000:
            assert one.high - one.low < max(0.2 * one.view, 10), table(comparisons)
    # The quota may be passed by what a CPU hands out at once (5 ms a period); a busy machine may leave less.
    assert docker.view <= 100 * share * 1.05 + 5
    if comparisons["mpstat", "idle", "all"].real > 20:
        assert docker.view >= 100 * share * 0.85


def test_cadvisor_s_prometheus_agrees_with_its_view(watch: Watch, host: LocalHost) -> None:
    lacks = why_unavailable(MONITORS["cadvisor"], host, 1.0, {})
    if lacks is not None:
        pytest.skip(lacks)  # in no package and no registry: CADVISOR=PATH
    seen = watch(LOOP, 0.5, ("probe", "cadvisor"))
    comparisons = seen.compared()
    assert {("cadvisor", name, "sut") for name in ("cpu_cores_irate", "working_set_bytes")} <= set(comparisons)
    assert all(one.agrees for one in comparisons.values()), table(comparisons)
    instant = comparisons["cadvisor", "cpu_cores_irate", "sut"]
    assert instant.samples >= SECONDS - 2
    if seen.delay_ns("cadvisor") < 20_000_000:
        assert 100 * (instant.high - instant.low) < 10, table(comparisons)


def test_the_client_prints_what_its_view_says(watch: Watch) -> None:
    seen = watch(LOOP, LITTLE)
    if seen.shown is None:
        left_out("there is no docker client")
    shown = json.loads(seen.shown)
    of_docker = [line for line in seen.views().lines if line.view.tool == "docker-stats"]
    cpu, memory = (
        next(line for line in of_docker if line.quantity.name == name) for name in ("cpu_percent", "memory_bytes")
    )
    assert cpu.figures.least is not None
    assert cpu.figures.most is not None
    # Of one second, some time within the trace: between the slowest and the fastest, give or take both's steps.
    slack = 2 * cpu.resolution + (cpu.figures.most - cpu.figures.least)
    assert cpu.figures.least - slack <= float(shown["CPUPerc"].rstrip("%")) <= cpu.figures.most + slack
    used = shown["MemUsage"].split(" / ")[0]
    assert memory.figures.least is not None
    assert memory.figures.most is not None
    # Printed with four digits.
    assert memory.figures.least * 0.999 <= in_bytes(used) <= memory.figures.most * 1.001


def in_bytes(text: str) -> float:
    """`1.43MiB` in bytes."""
    number = text.rstrip("BKMGTi")
    return float(number) * float(1024 ** "BKMGT".index(text[len(number)]))


DD = "dd if=/dev/zero of=/data/x bs=1M count=16 {how} 2>/dev/null; rm /data/x; sleep 0.3"


@pytest.mark.parametrize(
    ("how", "reaches_the_disk"),
    [
        pytest.param(("oflag=direct", "conv=fsync"), True, id="direct and fsync"),
        pytest.param(("",), False, id="buffered", marks=pytest.mark.slow),
    ],
)
def test_disk_io_agrees_with_iostat_pidstat_and_docker_stats(
    watch: Watch, how: tuple[str, ...], reaches_the_disk: bool
) -> None:
    writes = "; ".join(DD.format(how=each) for each in how)
    seen = watch(f"while :; do {writes}; done")
    comparisons = seen.compared()
    assert all(one.agrees for one in comparisons.values()), table(comparisons)
    assert any(tool == "iostat" and quantity == "written_kib" for tool, quantity, _ in comparisons)
    assert any(tool == "pidstat" and quantity == "written_kib" and one.real > 0
               for (tool, quantity, _), one in comparisons.items()), table(comparisons)  # fmt: skip
    if seen.trace.header["block_source"] == "none":
        return
    counted = seen.value("tare-probe", "block_written_bytes")
    assert counted is not None
    if reaches_the_disk:
        assert counted >= 16 * MIB
    stated = seen.trace.tables["cgroup"]
    if reaches_the_disk and stated["written_bytes"].is_null().all() and stated["bfq_written_bytes"].is_null().all():
        assert seen.value("docker-stats", "block_written_bytes") == 0
        assert seen.value("cadvisor", "fs_writes_bytes") is None
        assert any("No tool shows a container's disk I/O here" in sentence for sentence in seen.views().why)
