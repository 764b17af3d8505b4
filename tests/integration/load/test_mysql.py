"""tare-load against a real MariaDB: log-in, statements, answers that are checked, and faults."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.load.servers import Server, job, mariadb, operation, password_file, tare_load

ROWS = 100
READ = operation("read", "SELECT c FROM t WHERE id={id}", rows=1)
ID = {"uniform": {"from": 1, "to": ROWS}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with mariadb() as server:
        server.query(
            "CREATE TABLE test.t (id int PRIMARY KEY, c text, n decimal(10,2), s smallint, l bigint, f double);"
            f"INSERT INTO test.t SELECT seq, md5(seq), seq, seq, seq, seq FROM test.seq_1_to_{ROWS}"
        )
        yield server


def words(server: Server, path: str, *more: str) -> tuple[str, ...]:
    address = ("--address", server.address, "--database", "test")
    return ("run", "--protocol", "mysql", "--job", path, *address, *more)


@pytest.mark.parametrize("user", ["native", "ed25519"])
def test_a_password_is_right_or_wrong(server: Server, tmp_path: Path, user: str) -> None:
    path = job(tmp_path / "job.yaml", [READ], id=ID)
    right = words(server, path, "--operations", "10", "--user", user)
    run = tare_load(*right, "--password-file", password_file(tmp_path / "password"))
    assert (run.code, run.measure["right"]) == (0, 10), run.stderr
    run = tare_load(*right, "--password-file", password_file(tmp_path / "wrong", "wrong"))
    assert run.code == 3
    refused = f"tare-load: {server.address}: the server refused the log-in: Access denied for user '{user}'@"
    assert run.stderr.startswith(refused)


def test_a_user_may_have_no_password(server: Server, tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [READ], id=ID)
    assert tare_load(*words(server, path, "--operations", "10", "--user", "empty")).code == 0


@pytest.mark.parametrize("depth", [1, 16])
def test_answers_are_counted_in_rows_and_bytes(server: Server, depth: int, tmp_path: Path) -> None:
    path = job(
        tmp_path / "job.yaml",
        [
            operation("one", "SELECT c FROM t WHERE id={id}", rows=1),
            operation("some", "SELECT * FROM t WHERE id BETWEEN {id} AND 100", rows=1),
            operation("change", "UPDATE t SET c={text} WHERE id={id}", rows=1),
            operation("same", "UPDATE t SET n=n WHERE id={id}", rows=1),
            operation("gone", "SELECT c FROM t WHERE id={far}", rows=1),
            operation("unchanged", "UPDATE t SET c={text} WHERE id={far}", rows=1),
            operation("few", "SELECT c FROM t WHERE id<=3 AND s<{far}", rows=4),
            operation("double", "INSERT INTO t (id) VALUES ({id})"),
        ],
        id=ID,
        far={"uniform": {"from": 1000, "to": 2000}},
        text={"text": {"length": 20}},
    )
    run = tare_load(*words(server, path, "--operations", "4000", "--connections", "3", "--depth", str(depth)))
    assert run.code == 0, run.stderr
    kinds = {kind["name"]: kind for kind in run.measure["kinds"]}
    right = [(name, "right") for name in ("one", "some", "change", "same")]
    missing = [("gone", "missing"), ("unchanged", "missing")]
    for name, fate in (*right, *missing, ("few", "short"), ("double", "errors")):
        assert kinds[name][fate] > 300, name
        assert (
            sum(kinds[name][each] for each in ("right", "missing", "short", "wrong", "errors")) == kinds[name][fate]
        )
    [error] = run.measure["errors"]
    assert (error["kind"], error["code"]) == ("double", "1062")
    assert error["message"].startswith("Duplicate entry")


def test_values_of_every_type_arrive(server: Server, tmp_path: Path) -> None:
    written = operation("write", "INSERT INTO t VALUES ({id}, {text}, {id}, {id}, {id}, {id})", rows=1)
    text = {"text": {"length": 300}}
    path = job(tmp_path / "job.yaml", [written], id={"sequential": {"from": 501, "to": 600}}, text=text)
    run = tare_load(*words(server, path, "--operations", "100", "--connections", "2"))
    assert (run.code, run.measure["right"]) == (0, 100), run.measure["errors"]
    same = " AND ".join(f"{name} = id" for name in ("n", "s", "l", "f"))
    assert server.query(f"SELECT count(*) FROM test.t WHERE {same} AND length(c) = 300 AND id > 500") == "100"
    server.query("DELETE FROM test.t WHERE id > 500")


def test_transactions_begin_and_commit(server: Server, tmp_path: Path) -> None:
    steps = ("BEGIN", "UPDATE t SET l=l+1 WHERE id={id}", "SELECT l FROM t WHERE id={id}", "COMMIT")
    path = job(tmp_path / "job.yaml", [operation("change", *steps)], id=ID)
    before = int(server.query("SELECT sum(l) FROM test.t"))
    run = tare_load(*words(server, path, "--operations", "200", "--connections", "4"))
    assert (run.code, run.measure["right"], run.measure["requests"]) == (0, 200, 800), run.measure["errors"]
    assert int(server.query("SELECT sum(l) FROM test.t")) == before + 200


def test_a_table_that_is_missing_is_told_before_anything_is_sent(server: Server, tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [operation("read", "SELECT c FROM nowhere WHERE id={id}")], id=ID)
    run = tare_load(*words(server, path))
    assert run.code == 3
    assert run.stderr == (
        f"tare-load: {server.address}: the server refused a statement: Table 'test.nowhere' doesn't exist "
        "(in: SELECT c FROM nowhere WHERE id=?)"
    )


def test_a_database_that_is_missing_is_told(server: Server, tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [READ], id=ID)
    run = tare_load("run", "--protocol", "mysql", "--address", server.address, "--job", path, "--database", "no")
    assert (run.code, run.stderr) == (
        3,
        f"tare-load: {server.address}: the server refused the log-in: Unknown database 'no'",
    )


def test_a_server_that_is_killed_ends_the_run_long_before_its_time_with_its_counts(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [operation("read", "SELECT {id}", rows=1)], id=ID)
    with mariadb() as server:
        command = ["tare-load", *words(server, path, "--connections", "4", "--duration", "900")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(2)
            server.kill()
            out, output = process.communicate(timeout=60)
    assert process.returncode == 4, output
    assert '"how": "server-gone"' in out
    assert "the server went away" in output


def test_a_session_that_the_server_ends_is_opened_again(server: Server, tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [operation("slow", "SELECT sleep(0.01), {id}", rows=1)], id=ID)
    command = ["tare-load", *words(server, path, "--connections", "2", "--duration", "3")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(1)
        killing = "SELECT group_concat(concat('KILL ', id) SEPARATOR '; ') FROM information_schema.processlist"
        server.query(server.query(f"{killing} WHERE db = 'test'"))
        out, output = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "connection lost" in output
    assert '"reconnects": 2' in out


def statements_by_connection(server: Server) -> list[tuple[str, ...]]:
    """What the server's own log has of each connection, in its order; connections in no order."""
    log = server.query("SELECT thread_id, argument FROM mysql.general_log WHERE command_type = 'Execute'")
    by_thread: dict[str, list[str]] = {}
    for line in log.splitlines():
        thread, _, statement = line.partition("\t")
        by_thread.setdefault(thread, []).append(statement)
    return sorted(tuple(statements) for statements in by_thread.values())


def test_the_same_seed_sends_the_same_statements_in_the_same_order_on_each_connection(
    server: Server, tmp_path: Path
) -> None:
    path = job(
        tmp_path / "job.yaml",
        [operation("read", "SELECT c FROM t WHERE id={id}"), operation("text", "SELECT {text}")],
        id={"zipfian": {"from": 1, "to": 100, "exponent": 0.9}},
        text={"text": {"length": 20}},
    )
    server.query("SET GLOBAL log_output = 'TABLE'")
    logs = {}
    ways = {"first": ("9",), "other arm": ("9", "--rate", "2000", "--depth", "4"), "other seed": ("8",)}
    for name, (seed, *more) in ways.items():
        server.query("TRUNCATE mysql.general_log; SET GLOBAL general_log = ON")
        run = tare_load(*words(server, path, "--operations", "400", "--connections", "4", "--seed", seed, *more))
        server.query("SET GLOBAL general_log = OFF")
        assert (run.code, run.measure["requests"]) == (0, 400), run.stderr
        logs[name] = statements_by_connection(server)
    assert [len(statements) for statements in logs["first"]] == [100] * 4
    assert len({statements[:5] for statements in logs["first"]}) == 4
    # At a rate a free connection takes the next arrival, so it may send more or fewer of its statements.
    ways_through = zip(logs["first"], logs["other arm"], strict=True)
    assert all(one[: len(other)] == other[: len(one)] for one, other in ways_through)
    assert sum(map(len, logs["other arm"])) == 400
    assert logs["other seed"] != logs["first"]
