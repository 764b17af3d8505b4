"""The ledger: durable, ordered for removal, and never mistaking one process for another."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Timer
from unittest.mock import MagicMock

import pytest

from tare.errors import EnvironmentLacks, StoreError
from tare.sites import Process
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.process import from_ident, identify, parse_stat, to_ident
from tare.sites.sqlite_ledger import SqliteLedger


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "deep" / "ledger.sqlite")


def disown(ledger: SqliteLedger, tmp_path: Path, owner: Process) -> None:
    db = sqlite3.connect(tmp_path / "deep" / "ledger.sqlite")
    with db:
        db.execute("UPDATE made SET owner = ?", (to_ident(owner),))
    db.close()


def test_entries_come_in_order_of_removal_the_youngest_first(ledger: SqliteLedger) -> None:
    ledger.note(Kind.PATH, "/a")
    ledger.note(Kind.CGROUP, "tare/r")
    ledger.note(Kind.CGROUP, "tare/r/server")
    ledger.note(Kind.CONTAINER, "c")
    assert [entry.ident for entry in ledger.entries()] == ["c", "tare/r/server", "tare/r", "/a"]


def test_forgotten_entries_are_gone_and_forgetting_twice_is_no_error(ledger: SqliteLedger) -> None:
    ledger.note(Kind.NETWORK, "n")
    ledger.forget(Kind.NETWORK, "n", host="elsewhere")
    assert [entry.ident for entry in ledger.entries()] == ["n"]
    ledger.forget(Kind.NETWORK, "n")
    ledger.forget(Kind.NETWORK, "n")
    assert ledger.entries() == ()


def test_noting_twice_keeps_one_entry(ledger: SqliteLedger) -> None:
    ledger.note(Kind.PATH, "/a")
    ledger.note(Kind.PATH, "/a", keep=True)
    assert [(entry.ident, entry.keep) for entry in ledger.entries()] == [("/a", True)]


def test_entries_of_the_living_are_not_abandoned(ledger: SqliteLedger) -> None:
    ledger.note(Kind.PATH, "/a")
    assert ledger.abandoned() == ()
    assert ledger.entries()[0].owner == ledger.owner


@pytest.mark.parametrize("change", ["started", "boot"])
def test_a_recycled_pid_does_not_keep_an_entry_alive(ledger: SqliteLedger, tmp_path: Path, change: str) -> None:
    ledger.note(Kind.PATH, "/a")
    own = ledger.owner
    other = (
        Process(own.pid, own.started_ticks - 1, own.boot_id)
        if change == "started"
        else Process(own.pid, own.started_ticks, "another-boot")
    )
    disown(ledger, tmp_path, other)
    assert [entry.ident for entry in ledger.abandoned()] == ["/a"]


def test_caches_are_never_abandoned(ledger: SqliteLedger, tmp_path: Path) -> None:
    ledger.note(Kind.IMAGE, "sha256:1", keep=True)
    disown(ledger, tmp_path, Process(1, 1, "another-boot"))
    assert ledger.abandoned() == ()


def test_what_a_killed_process_noted_is_abandoned(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    program = (
        "import os, sys; from pathlib import Path; from tare.sites.ledger import Kind;"
        "from tare.sites.sqlite_ledger import SqliteLedger;"
        "SqliteLedger(Path(sys.argv[1])).note(Kind.CONTAINER, 'left'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False, timeout=60)
    assert [entry.ident for entry in SqliteLedger(path).abandoned()] == ["left"]


def test_a_newer_ledger_is_refused(ledger: SqliteLedger, tmp_path: Path) -> None:
    ledger.note(Kind.NETWORK, "seen")
    db = sqlite3.connect(tmp_path / "deep" / "ledger.sqlite")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="newer tare"):
        SqliteLedger(tmp_path / "deep" / "ledger.sqlite")


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database at all " * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteLedger(tmp_path / "ledger.sqlite")


def test_a_full_disk_is_told_whatever_sqlite_calls_it(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: an index that found no room was a disk I/O error."""
    ledger.note(Kind.NETWORK, "seen")
    failing = MagicMock(side_effect=sqlite3.OperationalError("disk I/O error"))
    monkeypatch.setattr(sqlite3, "connect", failing)
    with pytest.raises(StoreError, match=r"cannot be used: disk I/O error"):
        ledger.note(Kind.NETWORK, "one")
    monkeypatch.setattr(os, "statvfs", lambda _: MagicMock(f_bavail=3, f_frsize=4096))
    with pytest.raises(StoreError, match=r"cannot be used: No space left on device \(disk I/O error\)"):
        ledger.note(Kind.NETWORK, "two")


def test_stat_is_parsed_behind_the_last_bracket() -> None:
    raw = b"7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 4711 " + b"0 " * 18 + b"1 0 0 0 0\n"
    stat = parse_stat(raw)
    assert (stat.state, stat.started_ticks, stat.policy) == ("S", 4711, 1)


def test_idents_go_there_and_back() -> None:
    own = identify(LocalHost(), 1)
    assert own is not None
    assert from_ident(to_ident(own)) == own


def test_looking_makes_no_ledger(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "home" / "ledger.sqlite")
    assert ledger.entries() == ledger.abandoned() == ()
    ledger.forget(Kind.NETWORK, "never there")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_ledger_is_what_the_environment_lacks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentLacks, match="set TARE_HOME"):
        SqliteLedger(tmp_path / "file" / "home" / "ledger.sqlite").note(Kind.NETWORK, "one")
    with pytest.raises(EnvironmentLacks, match="set TARE_HOME"):
        SqliteLedger(tmp_path / "file" / "ledger.sqlite").note(Kind.NETWORK, "one")
    with pytest.raises(EnvironmentLacks, match="set TARE_HOME"):
        SqliteLedger(Path("/proc/no-such-home/ledger.sqlite")).note(Kind.NETWORK, "one")


@pytest.mark.parametrize("code", [sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_SHMLOCK])
def test_a_file_system_without_locks_is_what_the_environment_lacks(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refused(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("locking protocol")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr("tare.sites.sqlite_ledger.sqlite3.connect", refused)
    with pytest.raises(EnvironmentLacks, match="on a file system of this machine"):
        ledger.note(Kind.NETWORK, "one")


def test_a_ledger_whose_maker_was_killed_before_it_had_a_table_is_empty(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "ledger.sqlite").close()
    (tmp_path / "ledger.sqlite").touch()
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    assert ledger.entries() == ()
    ledger.note(Kind.NETWORK, "one")
    assert [entry.ident for entry in ledger.entries()] == ["one"]


def test_a_ledger_that_another_tare_is_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = SqliteLedger(path)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = Timer(0.3, other.execute, ["COMMIT"])
        done.start()
        try:
            ledger.note(Kind.PATH, "/one")
        finally:
            done.join()
    assert [entry.ident for entry in ledger.entries()] == ["/one"]
