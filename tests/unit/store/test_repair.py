"""What is whole of a damaged store is saved, and what is not is named; the damaged one stays as it is."""

from __future__ import annotations

import hashlib
import os
import random
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
    assert (good.exit_code, good.stdout) == (0, f"{whole} is whole: 4 attempts, each as it was committed\n")
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
    with pytest.raises(StoreError, match="which no tare gives it"):
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
    with pytest.raises(StoreError):
        act(whole, tmp_path / "home" / "new")
    assert (victim / "text").read_text() == "mine"


def test_a_fifo_in_place_of_a_raw_file_keeps_nobody_waiting(whole: Path, tmp_path: Path, plan: Plan) -> None:
    name = f"{plan.runs[1].id}-1"
    (whole / "raw" / name / "measure.stdout").unlink()
    os.mkfifo(whole / "raw" / name / "measure.stdout")
    os.mkfifo(whole / "raw" / f"{plan.runs[2].id}-1" / "more")
    done = repair(whole, tmp_path / "new")
    assert set(done.lost) == {name, f"{plan.runs[2].id}-1"}
    assert any("measure.stdout is missing" in line for line in verify(open_store(whole)))
