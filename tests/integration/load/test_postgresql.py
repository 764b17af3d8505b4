"""tare-load against a real PostgreSQL: log-in, statements, answers that are checked, and faults."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.load.servers import Server, free_port, job, operation, password_file, postgresql, tare_load

ROWS = 100
READ = operation("read", "SELECT c FROM t WHERE id={id}", rows=1)
ID = {"uniform": {"from": 1, "to": ROWS}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgresql() as server:
        server.query(
            "CREATE TABLE t (id int PRIMARY KEY, c text, n numeric, b bytea, s smallint, l bigint, f float8)"
        )
        server.query(f"INSERT INTO t SELECT i, md5(i::text), i, '', i, i, i FROM generate_series(1, {ROWS}) i")
        server.query("GRANT ALL ON t TO PUBLIC")
        yield server


def words(server: Server, path: str, *more: str) -> tuple[str, ...]:
    return (
        "run",
        "--protocol",
        "postgresql",
        "--address",
        server.address,
        "--job",
        path,
        "--database",
        "postgres",
        *more,
    )


@pytest.mark.parametrize("user", ["md5", "scram", "clear"])
def test_each_way_to_log_in(server: Server, user: str, tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [READ], id=ID)
    right = words(server, path, "--operations", "10", "--user", user)
    run = tare_load(*right, "--password-file", password_file(tmp_path / "password"))
    assert (run.code, run.measure["right"]) == (0, 10), run.stderr
    run = tare_load(*right, "--password-file", password_file(tmp_path / "wrong", "wrong"))
    assert run.code == 3
    assert (
        run.stderr == f"tare-load: {server.address}: the server refused the log-in: "
        f'password authentication failed for user "{user}"'
    )
    run = tare_load(*right)
    assert run.stderr.endswith("it wants a password; give one with --password-file")


@pytest.mark.parametrize("depth", [1, 16])
def test_answers_are_counted_in_rows_and_bytes(server: Server, depth: int, tmp_path: Path) -> None:
    path = job(
        tmp_path / "job.yaml",
        [
            operation("one", "SELECT c FROM t WHERE id={id}", rows=1),
            operation("some", "SELECT c FROM t WHERE id BETWEEN {id} AND 100", rows=1),
            operation("change", "UPDATE t SET c={text} WHERE id={id}", rows=1),
            operation("gone", "SELECT c FROM t WHERE id={far}", rows=1),
            operation("unchanged", "UPDATE t SET c={text} WHERE id={far}", rows=1),
            operation("few", "SELECT c FROM t WHERE id<=3 AND s<{far}", rows=4),
            operation("zero", "SELECT 1/(id-id) FROM t WHERE id={id}"),
        ],
        id=ID,
        far={"uniform": {"from": 1000, "to": 2000}},
        text={"text": {"length": 20}},
    )
    run = tare_load(*words(server, path, "--operations", "3000", "--connections", "3", "--depth", str(depth)))
    assert run.code == 0, run.stderr
    kinds = {kind["name"]: kind for kind in run.measure["kinds"]}
    for name, fate in (("one", "right"), ("some", "right"), ("change", "right"), ("gone", "missing")):
        assert kinds[name][fate] > 300
        assert (
            sum(kinds[name][each] for each in ("right", "missing", "short", "wrong", "errors")) == kinds[name][fate]
        )
    assert kinds["unchanged"]["missing"] > 300
    assert kinds["few"]["short"] > 300
    assert kinds["zero"]["errors"] > 300
    [error] = run.measure["errors"]
    assert (error["kind"], error["code"], error["message"]) == ("zero", "22012", "division by zero")


def test_values_of_every_type_arrive(server: Server, tmp_path: Path) -> None:
    names = ("id", "n", "s", "l", "f")
    written = operation("write", "INSERT INTO t VALUES ({id}, {text}, {id}, {text}, {id}, {id}, {id})", rows=1)
    path = job(
        tmp_path / "job.yaml", [written], id={"sequential": {"from": 501, "to": 600}}, text={"choice": ["ä?'"]}
    )
    run = tare_load(*words(server, path, "--operations", "100", "--connections", "2"))
    assert (run.code, run.measure["right"]) == (0, 100), run.measure["errors"]
    same = " AND ".join(f"{name} = id" for name in names)
    query = f"SELECT count(*) FROM t WHERE {same} AND c = 'ä?''' AND convert_from(b, 'UTF8') = c AND id > 500"
    assert server.query(query) == "100"
    server.query("DELETE FROM t WHERE id > 500")


def test_the_same_seed_sends_the_same_statements(server: Server, tmp_path: Path) -> None:
    server.query("CREATE TABLE IF NOT EXISTS seen (at serial, id int); GRANT ALL ON seen TO PUBLIC")
    path = job(tmp_path / "job.yaml", [operation("note", "INSERT INTO seen (id) VALUES ({id})", rows=1)], id=ID)
    logs = []
    for _ in range(2):
        server.query("TRUNCATE seen")
        assert tare_load(*words(server, path, "--operations", "50", "--seed", "9")).code == 0
        logs.append(server.query("SELECT id FROM seen ORDER BY at"))
    assert logs[0] == logs[1]
    assert len(set(logs[0].split())) > 10


def test_a_table_that_is_missing_is_told_before_anything_is_sent(server: Server, tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [operation("read", "SELECT c FROM nowhere WHERE id={id}")], id=ID)
    run = tare_load(*words(server, path))
    assert run.code == 3
    assert run.stderr == (
        f'tare-load: {server.address}: the server refused a statement: relation "nowhere" does not exist '
        "(in: SELECT c FROM nowhere WHERE id=?)"
    )


def test_nobody_listens(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [READ], id=ID)
    port = free_port()
    run = tare_load("run", "--protocol", "postgresql", "--address", f"127.0.0.1:{port}", "--job", path)
    assert run.code == 3
    assert run.stderr.endswith("connection refused: is the server running, and does it listen there?")


def test_a_server_that_is_killed_ends_the_run_long_before_its_time_with_its_counts(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [operation("read", "SELECT {id}::int", rows=1)], id=ID)
    with postgresql() as server:
        command = ["tare-load", *words(server, path, "--connections", "4", "--duration", "900")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(2)
            server.kill()
            out, output = process.communicate(timeout=60)
    assert process.returncode == 4, output
    assert '"how": "server-gone"' in out
    assert "the server went away" in output


def test_a_session_that_the_server_ends_is_opened_again_and_its_reason_is_told(
    server: Server, tmp_path: Path
) -> None:
    path = job(tmp_path / "job.yaml", [operation("slow", "SELECT pg_sleep(0.01), {id}::int", rows=1)], id=ID)
    command = ["tare-load", *words(server, path, "--connections", "2", "--duration", "3")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(1)
        server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tare-load'")
        out, output = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "terminating connection due to administrator command" in output
    assert '"reconnects": 2' in out
