"""What is whole of a damaged store is saved, and what is not is named; the damaged one stays as it is."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError
from tare.plan.model import Plan
from tare.store import open_store, resume_store, verify
from tare.store.copying import copy
from tare.store.repair import repair


@pytest.fixture
def whole(path: Path, plan: Plan, make: Any, staged: Any) -> Path:
    """A store with an attempt of each of four runs."""
    with resume_store(path, plan) as writer:
        for index in range(4):
            record = make(plan, index)
            staged(writer, record, f"output {index}\n")
            writer.commit(record)
    return path


def content(place: Path) -> dict[str, str]:
    files: Iterator[Path] = (each for each in place.rglob("*") if each.is_file())
    return {str(each.relative_to(place)): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def test_a_whole_store_is_copied_as_it_is(whole: Path, tmp_path: Path, plan: Plan) -> None:
    done = repair(whole, tmp_path / "new")
    assert (len(done.kept), done.lost) == (4, {})
    old, new = open_store(whole), open_store(tmp_path / "new")
    assert (new.records(), new.plan, new.id) == (old.records(), plan, old.id)
    assert verify(new) == ()


def test_a_changed_raw_file_costs_its_attempt_alone_and_the_run_is_made_again(
    whole: Path, tmp_path: Path, plan: Plan, make: Any, staged: Any
) -> None:
    (whole / "raw" / f"{plan.runs[1].id}-1" / "measure.stdout").write_text("another")
    before = content(whole)
    done = repair(whole, tmp_path / "new")
    assert dict(done.lost) == {f"{plan.runs[1].id}-1": "its raw file measure.stdout is not what was committed"}
    assert content(whole) == before
    assert verify(open_store(tmp_path / "new")) == ()
    with resume_store(tmp_path / "new", plan) as writer:
        record = make(plan, 1)
        staged(writer, record)
        writer.commit(record)
    assert len(open_store(tmp_path / "new").records()) == 4


def test_a_changed_record_is_left_out(whole: Path, tmp_path: Path, plan: Plan) -> None:
    with sqlite3.connect(whole / "store.sqlite") as database:
        database.execute("UPDATE runs SET record = replace(record, '1234.5', '9999.5') WHERE run_index = 2")
    done = repair(whole, tmp_path / "new")
    assert dict(done.lost) == {f"{plan.runs[2].id}-1": "its record is not what was committed"}


def test_a_link_in_place_of_a_raw_file_is_not_followed(whole: Path, tmp_path: Path, plan: Plan) -> None:
    file = whole / "raw" / f"{plan.runs[0].id}-1" / "measure.stdout"
    (tmp_path / "elsewhere").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    assert f"{plan.runs[0].id}-1" in repair(whole, tmp_path / "new").lost


@pytest.mark.parametrize("seed", range(12))
def test_a_database_with_damaged_bytes_gives_a_whole_store_or_a_sentence(
    whole: Path, tmp_path: Path, seed: int, plan: Plan
) -> None:
    chance = random.Random(seed)
    damaged = bytearray((whole / "store.sqlite").read_bytes())
    for _ in range(chance.choice((1, 10, 300))):
        damaged[chance.randrange(100, len(damaged))] = chance.randrange(256)
    (whole / "store.sqlite").write_bytes(damaged)
    try:
        done = repair(whole, tmp_path / "new")
    except StoreError:
        assert not (tmp_path / "new").exists()
        return
    new = open_store(tmp_path / "new")
    assert verify(new) == ()
    assert len(new.records()) == len(done.kept)
    assert new.plan == plan


def test_a_store_that_is_being_written_is_refused(path: Path, plan: Plan, tmp_path: Path) -> None:
    with resume_store(path, plan), pytest.raises(StoreError, match="is being written by process"):
        repair(path, tmp_path / "new")


def test_the_commands_say_what_is_wrong_and_end_with_1(whole: Path, tmp_path: Path, plan: Plan) -> None:
    good = CliRunner().invoke(app, ["store", "verify", str(whole)])
    assert (good.exit_code, good.stdout) == (
        0,
        f"{whole} is whole: 4 attempts, each unchanged since it was committed\n",
    )
    (whole / "raw" / f"{plan.runs[3].id}-1" / "measure.stdout").unlink()
    bad = CliRunner().invoke(app, ["store", "verify", str(whole)])
    assert bad.exit_code == 1
    assert f"raw file {plan.runs[3].id}-1/measure.stdout is missing" in bad.stdout
    saved = CliRunner().invoke(app, ["store", "repair", str(whole), "--to", str(tmp_path / "new")])
    assert saved.exit_code == 1
    assert "3 attempts saved, 1 left out" in saved.stdout
    assert CliRunner().invoke(app, ["store", "verify", str(tmp_path / "new")]).exit_code == 0


def hostile(store: Path, sql: str, *values: object) -> None:
    with sqlite3.connect(store / "store.sqlite") as database:
        database.execute(sql, values)


@pytest.mark.parametrize("name", ["../../../.bashrc", "/nonexistent/x", "a/../../../../.bashrc"])
@pytest.mark.parametrize("act", [repair, copy], ids=["repair", "copy"])
def test_a_raw_file_whose_name_leads_out_of_the_store_is_neither_read_nor_written(
    whole: Path, tmp_path: Path, plan: Plan, act: Callable[[Path, Path], object], name: str
) -> None:
    """Found by attack: beside a store that came with such a file, `tare store copy` wrote over one's own."""
    (whole.parent / ".bashrc").write_text("output 1\n")
    own = tmp_path / "home" / ".bashrc"
    own.parent.mkdir()
    own.write_text("mine")
    hostile(whole, "UPDATE raw_files SET name = ? WHERE run_id = ?", name, plan.runs[1].id)
    with pytest.raises(StoreError, match="a raw file named"):
        act(whole, own.parent / "new")
    with pytest.raises(StoreError, match="a name that tare does not use"):
        verify(open_store(whole))
    assert own.read_text() == "mine"


@pytest.mark.parametrize("act", [repair, copy], ids=["repair", "copy"])
def test_a_run_whose_name_leads_out_of_the_store_has_nothing_removed(
    whole: Path, tmp_path: Path, plan: Plan, act: Callable[[Path, Path], object]
) -> None:
    victim = tmp_path / "home" / "thesis-1"
    victim.mkdir(parents=True)
    (victim / "text").write_text("mine")
    for table in ("raw_files", "runs"):
        hostile(whole, f"UPDATE {table} SET run_id = ? WHERE run_id = ?", "../../thesis", plan.runs[1].id)
    with pytest.raises(StoreError, match="a run named"):
        act(whole, tmp_path / "home" / "new")
    assert (victim / "text").read_text() == "mine"


def attempt_becomes(store: Path, was: str, run_id: str, attempt: object) -> None:
    """Give the rows of a run's first attempt other keys; the digest of its record does not cover them."""
    hostile(store, "UPDATE raw_files SET run_id = ?, attempt = ? WHERE run_id = ?", run_id, attempt, was)
    hostile(store, "UPDATE runs SET run_id = ?, attempt = ?, ok = 0 WHERE run_id = ?", run_id, attempt, was)


@pytest.mark.parametrize("attempt", ["1/../../../thesis", b"1", 1.5, -1])
@pytest.mark.parametrize("act", [repair, copy], ids=["repair", "copy"])
def test_an_attempt_without_a_number_has_nothing_removed(
    whole: Path, tmp_path: Path, plan: Plan, act: Callable[[Path, Path], object], attempt: object
) -> None:
    """Found by review: SQLite keeps text in a column of numbers; `tare store copy` filled the directory there."""
    victim = tmp_path / "home" / "thesis"
    victim.mkdir(parents=True)
    (victim / "text").write_text("mine")
    attempt_becomes(whole, plan.runs[1].id, plan.runs[0].id, attempt)
    with pytest.raises(StoreError, match="an attempt named"):
        act(whole, tmp_path / "home" / "new")
    with pytest.raises(StoreError, match="an attempt named"):
        verify(open_store(whole))
    with pytest.raises(StoreError, match="an attempt named"), resume_store(whole, plan):
        pytest.fail("it is written to")
    assert [(path.name, path.read_text()) for path in victim.iterdir()] == [("text", "mine")]


def test_a_record_in_the_row_of_another_attempt_is_not_taken(whole: Path, tmp_path: Path, plan: Plan) -> None:
    run = plan.runs[1].id
    attempt_becomes(whole, run, run, 7)
    (whole / "raw" / f"{run}-1").rename(whole / "raw" / f"{run}-7")
    assert f"the record of {run}-7 belongs to another attempt" in verify(open_store(whole))
    assert dict(repair(whole, tmp_path / "new").lost) == {f"{run}-7": "its record belongs to another attempt"}
    with pytest.raises(StoreError, match=f"the record of {run}-7 .* is not what was committed"):
        copy(whole, tmp_path / "copy")


@pytest.mark.parametrize(("column", "value"), [("name", b"measure.stdout"), ("bytes", "many"), ("sha256", b"0")])
def test_a_row_of_raw_files_with_another_kind_of_value_costs_its_attempt(
    whole: Path, tmp_path: Path, plan: Plan, column: str, value: object
) -> None:
    run = plan.runs[1].id
    hostile(whole, f"UPDATE raw_files SET {column} = ? WHERE run_id = ?", value, run)
    with pytest.raises(StoreError, match="the store has"):
        copy(whole, tmp_path / "copy")
    lost = repair(whole, tmp_path / "new").lost
    assert dict(lost) == {f"{run}-1": "the digest of its raw file measure.stdout cannot be read"}


def test_an_attempt_without_files_and_directory_does_not_end_a_repair(
    path: Path, tmp_path: Path, plan: Plan, make: Any
) -> None:
    with resume_store(path, plan) as writer:
        for index in range(2):
            writer.commit(make(plan, index, raw=()))
    (path / "raw" / f"{plan.runs[0].id}-1").rmdir()
    assert (len(repair(path, tmp_path / "new").kept), verify(open_store(tmp_path / "new"))) == (2, ())


def test_a_fifo_in_place_of_a_raw_file_keeps_nobody_waiting(whole: Path, tmp_path: Path, plan: Plan) -> None:
    name = f"{plan.runs[1].id}-1"
    (whole / "raw" / name / "measure.stdout").unlink()
    os.mkfifo(whole / "raw" / name / "measure.stdout")
    done = repair(whole, tmp_path / "new")
    assert set(done.lost) == {name}
    assert any("measure.stdout is missing" in line for line in verify(open_store(whole)))
    with pytest.raises(StoreError, match="cannot be copied"):
        copy(whole, tmp_path / "copy")


def test_a_repair_copies_the_listed_files_and_no_others(whole: Path, tmp_path: Path, plan: Plan) -> None:
    name = f"{plan.runs[1].id}-1"
    (whole / "raw" / name / "more").write_text("of no record")
    (whole / "raw" / name / "link").symlink_to("/etc/passwd")
    os.mkfifo(whole / "raw" / name / "fifo")
    assert repair(whole, tmp_path / "new").lost == {}
    assert [path.name for path in (tmp_path / "new" / "raw" / name).iterdir()] == ["measure.stdout"]


@pytest.mark.parametrize("where", ["attempt", "file"])
def test_a_link_below_raw_has_no_file_outside_copied(whole: Path, tmp_path: Path, plan: Plan, where: str) -> None:
    """Found by review: a link in place of `raw/RUN-1` had `~/.ssh/id_rsa` copied into the new store's staging."""
    run, outside = plan.runs[1].id, tmp_path / "outside"
    inside = whole / "raw" / f"{run}-1"
    shutil.copytree(inside, outside)
    if where == "attempt":
        shutil.rmtree(inside)
        inside.symlink_to(outside)
    else:
        (inside / "measure.stdout").unlink()
        (inside / "measure.stdout").symlink_to(outside / "measure.stdout")
    assert f"raw file {run}-1/measure.stdout is missing" in verify(open_store(whole))
    assert set(repair(whole, tmp_path / "new").lost) == {f"{run}-1"}
    with pytest.raises(StoreError, match="cannot be copied"):
        copy(whole, tmp_path / "copy")
    for made in (tmp_path / "new", tmp_path / "copy"):
        assert "output 1\n" not in [path.read_text() for path in made.rglob("measure.stdout")]
