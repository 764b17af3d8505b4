"""What goes wrong in the middle of a run on a real engine: a failed run, its reason in one line, nothing left."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tare.cli.planned import planned
from tare.deployments.vm_network import links_of
from tare.errors import RunFailed
from tare.run.bench import Bench
from tare.run.events import Event, PhaseStarted
from tare.run.execute import Desk, execute
from tare.run.local import local_engine, local_machine
from tare.run.record import Phase, RunRecord
from tare.run.resume import Done
from tare.run.server import Server
from tare.sites.layout import default_layout
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.slow]

STUDY = """
format: 1
name: failing
question: What becomes of a run in which something fails?
sut:
  image: mariadb
  database: mariadb
  deployment: {deployment}
  network: {network}
  storage: {storage}
  limits: {{memory: 512M}}
  settings: {{innodb_buffer_pool_size: 16M, innodb_log_file_size: 8M}}
client: {{image: sysbench, deployment: bare, network: host}}
workload:
  name: sysbench
  script: {script}
  tables: 1
  table_size: 1000
  threads: {threads}
  measure_s: {measure_s}
  window_s: 1
protocol: {{name: fixed, blocks: 1, retries: 0, control: false}}
factors:
  flush: {{sets: sut.settings.innodb_flush_log_at_trx_commit, levels: {{each: 1, second: 2}}}}
baseline: each
"""
INTO_IT_S = 1.5


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Server]]:
    """The servers that runs have started, the last one last."""
    started: list[Server] = []
    start = Bench.start_server

    def noted(bench: Bench, *words: Any, **more: Any) -> Server:
        started.append(start(bench, *words, **more))
        return started[-1]

    monkeypatch.setattr(Bench, "start_server", noted)
    return iter([started])


def first_run(tmp_path: Path, harm: Callable[[], None] | None = None, **asked: str | int) -> RunRecord:
    """The record of a study's first run; `harm` is done to it a moment into its measure phase."""
    told = {
        "deployment": "bare",
        "network": "host",
        "storage": "{}",
        "script": "oltp_point_select",
        "threads": 2,
        "measure_s": 8,
    }
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(**{**told, **asked}))
    plan = planned(str(path), None, 1, None)
    timers = []

    def observe(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is Phase.MEASURE and harm is not None:
            timers.append(threading.Timer(INTO_IT_S, harm))
            timers[-1].start()

    staging = tmp_path / "staging"
    staging.mkdir()
    with local_engine() as engine:
        machine = local_machine(plan, engine)
        (record,) = next(execute(plan, machine, Desk(tmp_path.name, Done.of(()), staging), observe))
    for timer in timers:
        timer.join()
    return record


def assert_told(record: RunRecord, *words: str) -> None:
    """Failed while it was measured, in one line with these words, and nothing of it is left."""
    reason = record.outcome.reason or ""
    assert not record.outcome.ok
    assert record.outcome.failed_in is Phase.MEASURE, reason
    assert "\n" not in reason
    for word in words:
        assert word in reason
    left = SqliteLedger(default_layout().ledger).entries()
    assert not [entry for entry in left if not entry.keep and record.run_id in entry.ident]


@pytest.mark.parametrize("deployment", ["bare", "container"])
def test_a_server_that_is_killed(deployment: str, servers: Iterator[list[Server]], tmp_path: Path) -> None:
    started = next(servers)
    record = first_run(
        tmp_path, lambda: os.kill(started[-1].instance.process.pid, signal.SIGKILL), deployment=deployment
    )
    assert_told(record, "SIGKILL", "during measure")


@pytest.mark.parametrize("panics", [False, True])
def test_a_virtual_machine_that_is_killed_or_panics(
    panics: bool, servers: Iterator[list[Server]], tmp_path: Path
) -> None:
    started = next(servers)

    def harm() -> None:
        server = started[-1]
        if not panics:
            os.kill(server.instance.process.pid, signal.SIGKILL)
            return
        crash = ["sh", "-c", "echo c > /proc/sysrq-trigger"]
        with contextlib.suppress(RunFailed):  # the machine has gone when the answer is due
            server.deployment.exec(server.instance, crash, timeout_s=30, user="root")

    record = first_run(tmp_path, harm, deployment="vm", network="tap")
    assert_told(record, "virtual machine", "ended before its task did", "Kernel panic" if panics else "console: ")
    assert "sut.console" in record.raw
    task = started[-1].instance.task
    assert not [link for link in links_of(task) if Path("/sys/class/net", link).exists()]
    assert not Path(f"/run/tare-task.{task.name}").exists()


def test_a_client_whose_connections_are_cut(servers: Iterator[list[Server]], tmp_path: Path) -> None:
    started = next(servers)

    def cut() -> None:
        plan = started[-1].plan
        files, user = f"--defaults-file={plan.run_dir}/client.cnf", plan.secrets.user
        done = started[-1].inside(("mariadb", files, f"--execute=KILL USER '{user}'"), 30.0, b"")
        assert done.code == 0, done.stderr

    assert_told(first_run(tmp_path, cut), "onnection")


def test_a_disk_that_is_full(servers: Iterator[list[Server]], tmp_path: Path) -> None:
    """Something else takes all the room there is; inserts go on until the table has to grow."""
    started = next(servers)

    def fill() -> None:
        server = started[-1]
        data = Path(f"/proc/{server.instance.process.pid}/root{server.plan.data_dir}")
        with (data / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))

    record = first_run(
        tmp_path,
        fill,
        storage="{kind: block, size: 256M, file_system: ext4}",
        script="oltp_insert",
        threads=8,
        measure_s=60,
    )
    assert_told(record, "full")
