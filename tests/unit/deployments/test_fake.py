"""The fake deployment: real processes, so that what is built on deployments meets real ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tare.deployments import Deployment, Task
from tare.deployments.registry import DEPLOYMENTS
from tare.errors import TimedOut
from tare.images import Image, ImageConfig
from tare.sites import Output
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tare.sites.sqlite_ledger import SqliteLedger

ROOT = Path(__file__).resolve().parents[3]
IMAGE = Image("fake", "sha256:0", "/nowhere", None, ImageConfig())


def task_in(directory: Path, *argv: str) -> Task:
    output = Output(str(directory / "out"), str(directory / "err"))
    return Task("t", IMAGE, argv, output, "tare/test", env={"GREETING": "hello"})


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.fixture
def deployment(ledger: SqliteLedger) -> Deployment:
    return DEPLOYMENTS["fake"](LocalHost(), ledger)


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Task]:
    return partial(task_in, tmp_path)


def test_exit_code_and_output_of_a_task_are_kept(
    deployment: Deployment, task: Callable[..., Task], tmp_path: Path
) -> None:
    instance = deployment.start(task("sh", "-c", "echo $GREETING; exit 3"))
    assert deployment.wait(instance, 20) == 3
    assert (tmp_path / "out").read_text() == "hello\n"
    deployment.stop(instance)


def test_a_program_does_not_outlive_what_runs_it(
    deployment: Deployment, task: Callable[..., Task], tmp_path: Path
) -> None:
    """Found by `make chaos`: its server stayed when the shell around it was killed."""
    instance = deployment.start(task("sh", "-c", "echo $$; exec sleep 600"))
    end = time.monotonic() + 60
    while not (told := (tmp_path / "out").read_text()).strip() and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(instance.process.pid, signal.SIGKILL)
    while Path(f"/proc/{told.strip()}/cmdline").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert time.monotonic() < end
    deployment.stop(instance)


def test_stop_ends_a_task_and_leaves_nothing_in_the_ledger(
    deployment: Deployment, task: Callable[..., Task], ledger: SqliteLedger
) -> None:
    instance = deployment.start(task("sleep", "600"))
    assert len(ledger.entries()) == 1
    deployment.stop(instance)
    deployment.stop(instance)
    assert ledger.entries() == ()


def test_wait_times_out(deployment: Deployment, task: Callable[..., Task]) -> None:
    instance = deployment.start(task("sleep", "600"))
    with pytest.raises(TimedOut):
        deployment.wait(instance, 0.2)
    deployment.stop(instance)


def test_exec_hands_back_what_the_program_said(deployment: Deployment, task: Callable[..., Task]) -> None:
    instance = deployment.start(task("sleep", "600"))
    done = deployment.exec(instance, ["sh", "-c", "cat; exit 2"], timeout_s=10, stdin=b"in")
    assert (done.code, done.stdout) == (2, b"in")
    deployment.stop(instance)


class Killed(SqliteLedger):
    """A ledger whose tare is killed before the process that it has started is noted; its ident goes to a file."""

    def __init__(self, told: Path) -> None:
        super().__init__(told.with_suffix(".sqlite"))
        self._told = told

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:
        self._told.write_text(f"{kind} {host} {keep} {ident}")
        os._exit(1)


def abandon(directory: Path) -> None:
    DEPLOYMENTS["fake"](LocalHost(), Killed(directory / "killed")).start(
        task_in(directory, "touch", str(directory / "began"))
    )


def test_a_task_whose_tare_is_killed_before_it_is_noted_never_begins(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from {__name__} import abandon; abandon(Path({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False)
    host, abandoned = LocalHost(), from_ident((tmp_path / "killed").read_text().split()[-1])
    deadline = time.monotonic() + 60
    while alive(host, abandoned):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    assert not (tmp_path / "began").exists()
