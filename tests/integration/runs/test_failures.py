"""What goes wrong in the middle of a run on a real engine: a failed run, its reason in one line, nothing left."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest
from tests.integration.runs.failing import assert_told, fill_up, filled, first_run, signalled

from tare.deployments.vm.network import links_of
from tare.errors import RunFailed
from tare.run.attempt.server import Server
from tare.sites.local import own_process

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


def study(**asked: str | int) -> str:
    defaults = {
        "deployment": "bare",
        "network": "host",
        "storage": "{}",
        "script": "oltp_point_select",
        "threads": 2,
        "measure_s": 8,
    }
    return STUDY.format(**{**defaults, **asked})


@pytest.mark.parametrize("deployment", ["bare", "container"])
def test_a_server_that_is_killed(deployment: str, servers: list[Server], tmp_path: Path) -> None:
    record = first_run(study(deployment=deployment), tmp_path, signalled(servers, signal.SIGKILL))
    assert_told(record, "SIGKILL", "during measure")


@pytest.mark.parametrize("panics", [False, True])
def test_a_virtual_machine_that_is_killed_or_panics(panics: bool, servers: list[Server], tmp_path: Path) -> None:
    def harm() -> None:
        server = servers[-1]
        if not panics:
            os.kill(server.instance.process.pid, signal.SIGKILL)
            return
        crash = ["sh", "-c", "echo c > /proc/sysrq-trigger"]
        with contextlib.suppress(RunFailed):  # the machine has disappeared when the answer is due
            server.deployment.exec(server.instance, crash, timeout_s=30, user="root")

    record = first_run(study(deployment="vm", network="tap"), tmp_path, harm)
    assert_told(record, "virtual machine", "ended before its task did", "Kernel panic" if panics else "console: ")
    assert "sut.console" in record.raw
    task = servers[-1].instance.task
    assert not [link for link in links_of(task, own_process()) if Path("/sys/class/net", link).exists()]
    assert not Path(f"/run/tare-task.{task.name}").exists()


def test_a_client_whose_connections_are_cut(servers: list[Server], tmp_path: Path) -> None:
    def cut() -> None:
        plan = servers[-1].plan
        files, user = f"--defaults-file={plan.run_dir}/client.cnf", plan.secrets.user
        done = servers[-1].inside(("mariadb", files, f"--execute=KILL USER '{user}'"), 30.0, b"")
        assert done.code == 0, done.stderr

    assert_told(first_run(study(), tmp_path, cut), "onnection")


def test_a_disk_that_is_full(servers: list[Server], tmp_path: Path) -> None:
    """Inserts go on until the table has to grow."""
    storage = "{kind: block, size: 256M, file_system: ext4}"
    text = study(storage=storage, script="oltp_insert", threads=8, measure_s=60)
    assert_told(first_run(text, tmp_path, filled(servers)), "full")


@pytest.mark.parametrize("deployment", ["vm", "vm-container"])
def test_a_virtual_machine_s_disk_that_is_full(deployment: str, servers: list[Server], tmp_path: Path) -> None:
    """The server may go on with errors or end by it: its machine tells what was left in the end."""

    def fill() -> None:
        server = servers[-1]
        wanted = ["sh", "-c", f"cat /dev/zero > {server.plan.data_dir}/filler"]
        with contextlib.suppress(RunFailed):  # the server, and its machine, may be gone before the last byte
            server.deployment.exec(server.instance, wanted, timeout_s=300, user="root")

    vm = {"network": "tap", "storage": "{}\n  vm: {disk: 400M}"}
    text = study(deployment=deployment, script="oltp_insert", threads=8, measure_s=120, **vm)
    record = first_run(text, tmp_path, fill)
    assert_told(record, "the file system of its data has ", " MiB left")


def test_what_lies_below_a_virtual_machine_s_disk_is_full(servers: list[Server], tmp_path: Path) -> None:
    """Each write that needs room is an error inside, where the file system has plenty."""

    def fill() -> None:
        server = servers[-1]
        (source,) = (bind.source for bind in server.instance.task.binds if bind.target == server.plan.data_dir)
        fill_up(Path(source))

    below = {"network": "tap", "storage": "{kind: block, size: 600M, file_system: ext4}\n  vm: {disk: 2G}"}
    text = study(deployment="vm", script="oltp_insert", threads=8, measure_s=120, **below)
    record = first_run(text, tmp_path, fill)
    assert_told(record, "the file system below the disk of its data has ", " MiB left")
