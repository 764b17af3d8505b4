"""Connections that tare-load closes after a number of requests, with real servers: what they say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.integration.load.servers import (
    LoadRun,
    job,
    mariadb,
    operation,
    password_file,
    postgresql,
    redis,
    tare_load,
)

EACH = ("--operations", "400", "--connections", "4", "--requests-per-connection", "10")
READ = operation("read", "SELECT 1", rows=1)


def connected(run: LoadRun) -> int:
    """How many connections were opened during the run; the last four may not be, as nobody waits for them."""
    assert (run.code, run.measure["right"], run.measure["failed"]) == (0, 400, 0), run.stderr
    assert (run.measure["disconnects"], run.measure["errors"]) == (0, [])
    connect: dict[str, Any] = run.measure["connect"]
    assert connect["latency_ns"]["count"] == connect["right"] >= 36
    return int(connect["right"])


def test_mariadb_sees_each_client_say_goodbye(tmp_path: Path) -> None:
    path, secret = job(tmp_path / "job.yaml", [READ]), password_file(tmp_path / "password")
    with mariadb() as server:
        words = ("run", "--protocol", "mysql", "--address", server.address, "--user", "native", "--job", path)
        opened = connected(tare_load(*words, "--password-file", secret, *EACH))
        states = server.query("SHOW STATUS WHERE Variable_name IN ('Aborted_clients', 'Connections')").split()
    # The four that were open at the end may be cut.
    assert int(states[1]) <= 4
    assert int(states[3]) >= opened + 4


def test_postgresql_logs_in_anew_each_time(tmp_path: Path) -> None:
    path, secret = job(tmp_path / "job.yaml", [READ]), password_file(tmp_path / "password")
    with postgresql("max_connections=12") as server:
        start = ("run", "--protocol", "postgresql", "--address", server.address, "--job", path, "--user", "scram")
        words = (*start, "--database", "postgres", "--password-file", secret, "--reconnect-limit", "5", *EACH)
        assert connected(tare_load(*words)) <= 40
        open_loop = tare_load(*words, "--rate", "400", "--logs", str(tmp_path / "logs"))
        assert connected(open_loop) <= 40
    assert "Tag=connect," in (tmp_path / "logs" / "latency.hlog").read_text()


def test_redis_counts_the_connections(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [{"name": "ping", "steps": [{"send": "PING"}]}])
    with redis() as server:
        words = ("--protocol", "redis", "--address", server.address)
        opened = connected(tare_load("run", *words, "--job", path, *EACH))
        stats = server.query("stats")
    received = next(line for line in stats.splitlines() if line.startswith("total_connections_received"))
    assert int(received.partition(":")[2]) >= opened + 4


def test_connecting_cannot_share_its_name(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [{"name": "connect", "steps": [{"send": "PING"}]}])
    run = tare_load("run", "--protocol", "redis", "--job", path, "--requests-per-connection", "1")
    assert run.code == 2
    assert run.stderr.endswith("connecting is the operation `connect`: give yours another name")
