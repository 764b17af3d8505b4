from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded

from tare.errors import StoreError
from tare.store import open_store, resume_store, verify
from tare.store.copying import copy
from tare.store.files import held, holder, store_name
from tare.store.repair import repair
from tare.store.schema import APPLICATION_ID, FORMAT


def test_a_second_writer_is_told_who_holds_the_store(path: Path, plan: Any) -> None:
    with (
        resume_store(path, plan),
        pytest.raises(StoreError, match="being written by another tare"),
        resume_store(path, plan),
    ):
        pytest.fail("two writers")


_HOLD = """
import sys, time
from pathlib import Path
from tare.store.files import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_goes_with_a_killed_process(path: Path, plan: Any) -> None:
    with resume_store(path, plan):
        pass
    argv = [sys.executable, "-c", _HOLD, str(path / "lock")]
    with preloaded.Popen(argv, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(StoreError, match=f"process {holder.pid}"), resume_store(path, plan):
                pytest.fail("the lock is not held")
        finally:
            holder.kill()
    with resume_store(path, plan) as store:
        assert store.records() == ()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 2}, "belongs to another plan: seed is 1 there and 2 here"),
        ({"scale": "demo"}, "scale is full there and demo here"),
        ({"measure_s": 2.0}, "arms.a.settings.workload.measure_s is 1.0 there and 2.0 here"),
        ({"margins": {"throughput": 0.05}}, "margins.throughput is not set there and 0.05 here"),
        ({"blocks": 1}, "protocol.blocks is 2 there and 1 here; caps can be raised, not lowered"),
        (
            {"blocks": 3, "sequence": "together"},
            "protocol.blocks is 2 there and 3 here, protocol.seq",
        ),
    ],
)
def test_a_store_of_another_plan_is_refused(path: Path, plan: Any, plan_of: Any, other: Any, message: str) -> None:
    with resume_store(path, plan):
        pass
    with pytest.raises(StoreError, match=message), resume_store(path, plan_of(**other)):
        pytest.fail("another plan was let in")


def test_a_reworded_question_resumes(path: Path, plan: Any, plan_of: Any) -> None:
    with resume_store(path, plan):
        pass
    with resume_store(path, plan_of(question="Which one?")) as store:
        assert store.plan == plan


def test_a_higher_cap_goes_on_with_the_study(path: Path, plan: Any, plan_of: Any, make: Any, staged: Any) -> None:
    record = make(plan, 0)
    with resume_store(path, plan) as store:
        staged(store, record)
        store.commit(record)
    longer = plan_of(blocks=5)
    with resume_store(path, longer) as store:
        assert store.plan == longer
        assert store.records() == (record,)
        assert store.records()[0].plan_digest == plan.digest
    assert verify(open_store(path)) == ()
    with pytest.raises(StoreError, match="caps can be raised, not lowered"), resume_store(path, plan):
        pytest.fail("the cap was lowered")


def test_a_directory_with_other_things_in_it_is_left_alone(path: Path, plan: Any) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("\\begin")
    with pytest.raises(StoreError, match="other content"), resume_store(path, plan):
        pytest.fail("a foreign directory was taken")
    assert [entry.name for entry in path.iterdir()] == ["thesis.tex"]


def test_a_store_can_be_read_while_it_is_written(path: Path, plan: Any, make: Any, staged: Any) -> None:
    with resume_store(path, plan) as store:
        reader = open_store(path)
        assert reader.records() == ()
        record = make(plan, 0)
        staged(store, record)
        store.commit(record)
        assert reader.records() == (record,)


def test_where_there_is_no_store_nothing_is_made(path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        open_store(path)
    assert not path.exists()


def test_a_newer_format_is_refused(path: Path, plan: Any) -> None:
    with resume_store(path, plan):
        pass
    database = sqlite3.connect(path / "store.sqlite")
    database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()
    with pytest.raises(StoreError, match="newer tare"):
        open_store(path)
    with pytest.raises(StoreError, match="newer tare"), resume_store(path, plan):
        pytest.fail("a newer store was written to")


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""])
def test_a_file_that_is_no_store_is_a_store_error(path: Path, content: bytes) -> None:
    path.mkdir()
    (path / "store.sqlite").write_bytes(content)
    with pytest.raises(StoreError):
        open_store(path)


def test_another_programs_database_is_refused(path: Path, plan: Any) -> None:
    path.mkdir()
    (path / "lock").touch()
    database = sqlite3.connect(path / "store.sqlite")
    database.execute("CREATE TABLE guests (name)")
    database.close()
    with pytest.raises(StoreError, match="not a store of tare"), resume_store(path, plan):
        pytest.fail("a foreign database was taken")


def test_a_store_says_that_it_is_one(path: Path, plan: Any) -> None:
    with resume_store(path, plan):
        pass
    database = sqlite3.connect(path / "store.sqlite")
    assert database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    database.close()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda raw: (raw / "measure.stdout").write_text("changed"), "was changed"),
        (lambda raw: (raw / "measure.stdout").unlink(), "is missing"),
        (lambda raw: (raw.parent / "stray").mkdir(), "belongs to no record"),
        (lambda raw: _execute(raw.parents[1], "UPDATE runs SET digest = 'x'"), "is not what was committed"),
    ],
)
def test_damage_is_found(path: Path, committed: Any, harm: Any, message: str) -> None:
    harm(path / "raw" / f"{committed.run_id}-1")
    assert any(message in line for line in verify(open_store(path)))


def _execute(path: Path, statement: str) -> None:
    database = sqlite3.connect(path / "store.sqlite")
    with database:
        database.execute(statement)
    database.close()


def test_a_damaged_record_in_a_sound_database_is_told(path: Path, committed: Any) -> None:
    assert committed.outcome.ok
    with sqlite3.connect(path / "store.sqlite") as database:
        database.execute("UPDATE runs SET record = '{}'")
    database.close()
    with pytest.raises(StoreError, match="cannot be read"):
        open_store(path).records()


def test_a_plan_from_before_a_bound_is_refused_with_its_key(path: Path, committed: Any) -> None:
    assert committed.outcome.ok
    with sqlite3.connect(path / "store.sqlite") as database:
        database.execute(
            "UPDATE study SET plan = json_set(plan, '$.study.arms[0].settings.sut.limits.cpu_quota', 1e300)"
        )
    database.close()
    with pytest.raises(
        StoreError, match=r"cannot be read: study\.arms\.0\..*cpu_quota.* less than or equal to 8192"
    ):
        open_store(path)


def test_a_lock_that_cannot_be_opened_is_told_with_the_way_to_read_the_store(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"cannot be written: Is a directory \(`tare report` can still read"),
        held(tmp_path),
    ):
        pytest.fail("it is held")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EAGAIN, r"being written by another tare \(process 4711\)"),
        (errno.EACCES, r"being written by another tare \(process 4711\)"),
        (errno.ENOLCK, r"cannot be locked: No locks available \(without locks"),
        (errno.EOPNOTSUPP, r"cannot be locked: Operation not supported \(without locks"),
    ],
)
def test_a_lock_as_nfs_refuses_it_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, message: str
) -> None:
    (tmp_path / "lock").write_text("4711\n")

    def refused(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tare.store.files.fcntl.flock", refused)
    with pytest.raises(StoreError, match=message), held(tmp_path / "lock"):
        pytest.fail("it is held")
    assert (tmp_path / "lock").read_text() == "4711\n", "whose it is stays told"


def test_a_store_that_only_others_may_write_is_read(path: Path, plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with resume_store(path, plan):
        pass
    for left in path.glob("store.sqlite-*"):
        left.unlink()
    monkeypatch.setattr("tare.store.schema.os.access", lambda *_: False)
    assert open_store(path).records() == ()
    assert not list(path.glob("store.sqlite-*"))


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_a_store_of_which_a_crash_left_one_file_of_the_database_is_begun_anew(
    tmp_path: Path, plan: Any, end: str
) -> None:
    """Found by the crash simulator: the journal alone was taken for other content."""
    path = tmp_path / "begun"
    path.mkdir()
    (path / f"store.sqlite{end}").touch()
    with resume_store(path, plan):
        pass
    assert open_store(path).records() == ()


@pytest.mark.parametrize("name", ["lock", "store.sqlite", "store.sqlite-wal", "raw", "staging"])
def test_links_in_a_store_of_somebody_else_let_nothing_outside_be_written_or_removed(
    path: Path, plan: Any, committed: Any, tmp_path: Path, name: str
) -> None:
    """Found by attack: `staging -> /home/somebody` had all directories there removed, `lock` emptied any file."""
    outside = tmp_path / "outside"
    (outside / "thesis").mkdir(parents=True)
    (outside / "thesis" / "text").write_text("ten years of work")
    inside = path / name
    if inside.is_dir():
        shutil.rmtree(inside)
        inside.symlink_to(outside)
    else:
        inside.unlink(missing_ok=True)
        inside.symlink_to(outside / "thesis" / "text")
    with pytest.raises(StoreError, match="is a link"), resume_store(path, plan):
        pass
    acts: list[Callable[[Path], object]] = [
        open_store,
        lambda store: copy(store, tmp_path / "copy"),
        lambda store: repair(store, tmp_path / "new"),
    ]
    for act in acts:
        with pytest.raises(StoreError, match="is a link"):
            act(path)
    assert (outside / "thesis" / "text").read_text() == "ten years of work"


def test_a_fifo_in_place_of_the_lock_is_a_store_error(
    path: Path, plan: Any, committed: Any, tmp_path: Path
) -> None:
    assert committed.outcome.ok
    (path / "lock").unlink()
    os.mkfifo(path / "lock")
    with pytest.raises(StoreError, match="lock is not a regular file"), held(path / "lock"):
        pytest.fail("it is held")
    with pytest.raises(StoreError, match="lock is not a regular file"), resume_store(path, plan):
        pytest.fail("it is written to")
    with pytest.raises(StoreError, match="lock is not a regular file"):
        repair(path, tmp_path / "new")
    assert holder(path / "lock") is None


def test_a_lock_that_cannot_be_written_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tare.store.files.os.pwrite", full)
    with pytest.raises(StoreError, match="cannot be written: No space left"), held(tmp_path / "lock"):
        pytest.fail("it is held")


@pytest.mark.parametrize("where", ["raw/{run}-1", "raw/{run}-1/measure.stdout", "raw/{run}-1/monitors"])
def test_the_path_of_a_raw_file_leads_over_no_link(path: Path, committed: Any, tmp_path: Path, where: str) -> None:
    """Reports, explanations and frames read below such paths."""
    inside, outside = path / where.format(run=committed.run_id), tmp_path / "outside"
    if inside.exists():
        inside.rename(outside)
    inside.symlink_to(outside)
    store = open_store(path)
    with pytest.raises(StoreError, match="is a link, and stores have no links"):
        store.raw(committed, "")
    if where.endswith("monitors"):
        assert store.raw(committed, "measure.stdout").read_text() == "out\n"
    else:
        with pytest.raises(StoreError, match="is a link, and stores have no links"):
            store.raw(committed, "measure.stdout")


def test_a_fifo_below_a_raw_directory_is_refused_before_it_is_opened(path: Path, committed: Any) -> None:
    trace = path / "raw" / f"{committed.run_id}-1" / "monitors" / "probe" / "trace"
    trace.mkdir(parents=True)
    os.mkfifo(trace / "cpu.parquet")
    for name in ("", "monitors", "monitors/probe/trace", "monitors/probe/trace/cpu.parquet"):
        with pytest.raises(StoreError, match=r"cpu\.parquet is not a regular file"):
            open_store(path).raw(committed, name)


@pytest.mark.parametrize("store_id", ["../../thesis", "/etc", "", "..", None, 1])
def test_the_copies_of_a_store_whose_id_leads_out_are_refused(store_id: object) -> None:
    with pytest.raises(StoreError, match="an ID named"):
        store_name(store_id)
    assert store_name("0123456789abcdef0123456789abcdef") == "0123456789abcdef0123456789abcdef"
