"""tare-load over the Unix sockets of real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.load.servers import job, mariadb, operation, password_file, postgresql, redis, tare_load

EACH = ("--operations", "200", "--connections", "4")
READ = operation("read", "SELECT 1", rows=1)


def test_redis(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [{"name": "ping", "steps": [{"send": "PING"}]}])
    with redis() as server:
        words = ("run", "--protocol", "redis", "--address", f"unix:{server.at}/socket", "--job", path, *EACH)
        run = tare_load(*words)
    assert (run.code, run.measure["right"]) == (0, 200), run.stderr
    assert run.measure["parts"]["sampled"] == 0
    gone = tare_load(*words)
    assert gone.code == 3
    assert gone.stderr.startswith(f"tare-load: unix:{server.at}/socket: connection refused")


def test_mariadb_knows_who_connects(tmp_path: Path) -> None:
    path, secret = job(tmp_path / "job.yaml", [READ]), password_file(tmp_path / "password")
    with mariadb() as server:
        server.query("CREATE USER local IDENTIFIED VIA unix_socket")
        words = ("run", "--protocol", "mysql", "--address", f"unix:{server.at}/socket", "--job", path, *EACH)
        run = tare_load(*words, "--user", "native", "--password-file", secret)
        assert (run.code, run.measure["right"]) == (0, 200), run.stderr
        other = tare_load(*words, "--user", "local")
    assert other.code == 3
    assert other.stderr.endswith("Access denied for user 'local'@'localhost'")


@pytest.mark.parametrize("user", ["postgres", "md5", "scram", "clear"])
def test_postgresql_by_the_directory_or_the_socket(tmp_path: Path, user: str) -> None:
    path, secret = job(tmp_path / "job.yaml", [READ]), password_file(tmp_path / "password")
    with postgresql() as server:
        (server.at / ".s.PGSQL.5432").symlink_to(server.at / f".s.PGSQL.{server.port}")
        for address in (f"unix:{server.at}", f"unix:{server.at}/.s.PGSQL.{server.port}"):
            words = ("run", "--protocol", "postgresql", "--address", address, "--job", path, *EACH)
            run = tare_load(*words, "--database", "postgres", "--user", user, "--password-file", secret)
            assert (run.code, run.measure["right"]) == (0, 200), run.stderr


@pytest.mark.parametrize(
    ("protocol", "more", "why"),
    [
        ("cql", (), "Cassandra has no Unix socket: --address needs HOST:PORT"),
        ("redis", ("--tls",), "nobody else reads what goes over a Unix socket: leave --tls out"),
    ],
)
def test_what_has_no_meaning_is_refused(tmp_path: Path, protocol: str, more: tuple[str, ...], why: str) -> None:
    path = job(tmp_path / "job.yaml", [READ])
    run = tare_load("run", "--protocol", protocol, "--address", "unix:/x", "--job", path, *more)
    assert (run.code, run.stderr) == (2, f"tare-load: {why}")
