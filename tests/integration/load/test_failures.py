"""What becomes of a run when something breaks: the sentence that the workload gives as its failure."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.load.servers import LIMIT_S, PASSWORD, Server, free_port, mariadb, postgresql

from tare.databases import Secrets
from tare.deployments import Endpoint
from tare.errors import RunFailed
from tare.workloads import Target, output_path
from tare.workloads.tare_load.parameters import TareLoadParameters
from tare.workloads.tare_load.tare_load import TareLoad

pytestmark = pytest.mark.slow

Break = Callable[[Server], None]
STATEMENT: dict[str, Any] = {
    "operations": ({"name": "read", "steps": ({"send": "SELECT 1", "expect": {"rows": 1}},)},)
}


def measured(
    at: Path,
    target: Target,
    breaks: Break | None = None,
    server: Server | None = None,
    most_files: int = 1024,
    **given: Any,
) -> None:
    """Carry out a measure phase as a run does, breaking something after a second, and read it."""
    asked = {"job": STATEMENT, "measure_s": 3.0, "connections": 2, "reply_limit_s": 1.0, **given}
    parameters = TareLoadParameters.model_validate(asked)
    command = TareLoad().measure(parameters, target, str(at))
    for name, content in command.files.items():
        (at / name).write_text(content)
    limited = ["prlimit", f"--nofile={most_files}:{most_files}"]
    argv = limited + [word.replace("--database=tare", "--database=test") for word in command.argv]
    stdout, stderr = at / "measure.stdout", at / "measure.stderr"
    with (
        stdout.open("wb") as out,
        stderr.open("wb") as err,
        subprocess.Popen(argv, stdout=out, stderr=err) as process,
    ):
        if breaks is not None and server is not None:
            time.sleep(1.0)
            breaks(server)
        code = process.wait(timeout=LIMIT_S)
    for name in command.output_files:
        if (at / name).exists():
            (at / name).rename(output_path(stdout, name))
    TareLoad().parse(parameters, stdout, stderr, code)


def target(port: int, password: str = PASSWORD) -> Target:
    return Target("mariadb", Endpoint("127.0.0.1", port), Secrets("native", password))


def failure(at: Path, to: Target, breaks: Break | None = None, server: Server | None = None, **given: Any) -> str:
    with pytest.raises(RunFailed) as failed:
        measured(at, to, breaks, server, **given)
    assert "\n" not in str(failed.value)
    return str(failed.value)


def stop(server: Server) -> None:
    os.kill(server.process.pid, signal.SIGSTOP)


def test_a_server_that_is_killed(tmp_path: Path) -> None:
    with mariadb() as server:
        reason = failure(tmp_path, target(server.port), Server.kill, server, measure_s=20.0)
    assert reason.startswith("the server went away: ")


def test_a_server_that_stands_still(tmp_path: Path) -> None:
    with mariadb() as server:
        reason = failure(tmp_path, target(server.port), stop, server)
    assert "2 read lost" in reason
    assert "the server did not answer within 1 s" in reason


def test_sessions_that_end_and_begin_again_are_no_success(tmp_path: Path) -> None:
    def end_sessions(server: Server) -> None:
        for number in server.query("SELECT id FROM information_schema.processlist WHERE user = 'native'").split():
            server.query(f"KILL {number}")

    slow = {"operations": ({"name": "wait", "steps": ({"send": "SELECT SLEEP(0.05)", "expect": {"rows": 1}},)},)}
    with mariadb() as server:
        reason = failure(tmp_path, target(server.port), end_sessions, server, job=slow)
    assert "wait lost" in reason


def test_a_wrong_password(tmp_path: Path) -> None:
    with mariadb() as server:
        reason = failure(tmp_path, target(server.port, "wrong"))
    assert reason.startswith("no server: ")
    assert "Access denied" in reason


def test_a_table_that_is_missing(tmp_path: Path) -> None:
    with mariadb() as server:
        reason = failure(tmp_path, target(server.port), job=None, sysbench={"script": "oltp_point_select"})
    assert "Table 'test.sbtest1' doesn't exist" in reason


def test_a_port_that_is_closed(tmp_path: Path) -> None:
    reason = failure(tmp_path, target(free_port()))
    assert "connection refused" in reason


def test_a_limit_of_files_below_the_connections(tmp_path: Path) -> None:
    with mariadb("--max-connections=500") as server:
        reason = failure(tmp_path, target(server.port), connections=200, most_files=64)
    assert "200 connections need 264 file descriptors, but the limit is 64" in reason


def test_a_session_limit_of_postgresql(tmp_path: Path) -> None:
    with postgresql("max_connections=8") as server:
        to = Target("postgresql", Endpoint("127.0.0.1", server.port), Secrets("postgres", ""))
        reason = failure(tmp_path, to, connections=20)
    assert "too many clients" in reason or "remaining connection slots" in reason or "does not exist" in reason
