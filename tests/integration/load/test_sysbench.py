"""tare-load's sysbench scripts beside sysbench itself: either reads and changes what the other has filled."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.integration.load.servers import LIMIT_S, LoadRun, Server, mariadb, postgresql, program, tare_load

TABLES, ROWS = 2, 250
SIZES = (f"--tables={TABLES}", f"--table-size={ROWS}")
SCRIPTS = (
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
)


@dataclass(frozen=True)
class Bench:
    """A server with two databases, `ours` and `theirs`, each filled by one of the two programs."""

    name: str
    server: Server

    def tare_load(self, action: str, database: str, script: str, *more: str) -> LoadRun:
        words = ("--protocol", self.name, "--address", self.server.address, "--database", database)
        return tare_load(action, *words, "--sysbench", script, *SIZES, *more)

    def sysbench(self, action: str, database: str, script: str, *more: str) -> str:
        driver, user = ("mysql", "root") if self.name == "mysql" else ("pgsql", "postgres")
        words = [program("sysbench", "sysbench"), script, f"--db-driver={driver}", *SIZES, *more]
        words += [f"--{driver}-host=127.0.0.1", f"--{driver}-port={self.server.port}", f"--{driver}-user={user}"]
        words += [f"--{driver}-db={database}", action]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def query(self, database: str, text: str) -> str:
        if self.name == "mysql":
            return self.server.query(f"USE {database}; {text}")
        at = self.server.client.index("-c")
        client = (*self.server.client[:at], "-d", database, "-c")
        return Server(self.server.port, self.server.process, client).query(text)


@pytest.fixture(scope="module", params=["mysql", "postgresql"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    make = mariadb if request.param == "mysql" else postgresql
    with make() as server:
        bench = Bench(request.param, server)
        for database in ("ours", "theirs"):
            server.query(f"CREATE DATABASE {database}")
        run = bench.tare_load("load", "ours", "oltp_read_write", "--connections", "3")
        assert (run.code, run.measure["failed"]) == (0, 0), run.stderr
        bench.sysbench("prepare", "theirs", "oltp_read_write")
        yield bench


def test_tables_are_the_same(bench: Bench) -> None:
    if bench.name == "mysql":
        shown = [bench.query(database, "SHOW CREATE TABLE sbtest2") for database in ("ours", "theirs")]
        assert re.sub(r"AUTO_INCREMENT=\d+", "", shown[0]) == re.sub(r"AUTO_INCREMENT=\d+", "", shown[1])
    else:
        columns = (
            "SELECT column_name, data_type, character_maximum_length, is_nullable, column_default"
            " FROM information_schema.columns WHERE table_name = 'sbtest2' ORDER BY ordinal_position"
        )
        indexes = "SELECT indexdef FROM pg_indexes WHERE tablename = 'sbtest2' ORDER BY indexname"
        for query in (columns, indexes):
            assert bench.query("ours", query) == bench.query("theirs", query)


def test_rows_have_the_same_form(bench: Bench) -> None:
    lengths = "min(length(rtrim(c))), max(length(rtrim(c))), min(length(rtrim(pad))), max(length(rtrim(pad)))"
    query = f"SELECT count(*), min(id), max(id), {lengths} FROM sbtest1 WHERE id <= {ROWS}"
    assert bench.query("ours", query) == bench.query("theirs", query)
    text = bench.query("ours", "SELECT c FROM sbtest1 WHERE id = 7")
    assert re.fullmatch(r"(\d{11}-){9}\d{11}", text.strip())


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_script_finds_what_sysbench_has_filled(bench: Bench, script: str) -> None:
    run = bench.tare_load("run", "theirs", script, "--operations=100", "--rand-type=uniform")
    assert run.code == 0, run.stderr
    assert (run.measure["right"], run.measure["failed"]) == (100, 0), run.measure["kinds"]
    if script == "oltp_delete":
        run = bench.tare_load("run", "theirs", "oltp_point_select", "--operations=500", "--rand-type=uniform")
        bench.sysbench("cleanup", "theirs", script)
        bench.sysbench("prepare", "theirs", script)
        assert run.measure["kinds"][0]["missing"] > 20, "a row that is gone is no success"


def test_sysbench_finds_what_tare_load_has_filled(bench: Bench) -> None:
    for script in ("oltp_read_write", "oltp_insert"):
        output = bench.sysbench("run", "ours", script, "--events=100", "--time=0")
        assert re.search(r"total number of events:\s+100\b", output), output
        assert re.search(r"ignored errors:\s+0 ", output), output


def test_a_table_that_is_there_is_not_filled_again(bench: Bench) -> None:
    run = bench.tare_load("load", "ours", "oltp_read_only")
    assert run.code == 3
    assert "sbtest1" in run.stderr
    assert "already exists" in run.stderr
    assert not run.document


@pytest.mark.parametrize("bench", ["mysql"], indirect=True)  # the server's own log of statements is MariaDB's
def test_one_event_sends_what_sysbench_sends(bench: Bench) -> None:
    seen = []
    for database in ("ours", "theirs"):
        bench.query(
            database, "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1"
        )
        if database == "ours":
            assert bench.tare_load("run", database, "oltp_read_write", "--operations=20").code == 0
        else:
            bench.sysbench("run", database, "oltp_read_write", "--events=20", "--time=0")
        bench.query(database, "SET GLOBAL general_log = 0")
        executed = "SELECT argument FROM mysql.general_log WHERE command_type = 'Execute' ORDER BY event_time"
        lines = bench.query(database, executed).splitlines()
        plain = [re.sub(r"sbtest\d|'[-\d]+'|\b\d+\b", "?", line) for line in lines]
        seen.append(plain)
    assert len(seen[0]) == 400
    assert seen[0] == seen[1]
