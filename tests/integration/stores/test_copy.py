"""`tare store copy` between a directory and a URL, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select
from tests.integration.stores.servers import DatabaseServer
from tests.unit.store.conftest import make_plan, make_record, stage
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError
from tare.run.ending import ending_of
from tare.run.resume import StudyState
from tare.store import copying, open_store, resume_store, verify
from tare.store.copying import copy
from tare.store.schema import endings, facts, raw_files, runs, study
from tare.store_place import StorePlace, parse_store_url


def made(place: StorePlace, runs_: int = 4) -> StorePlace:
    plan = make_plan()
    with resume_store(place, plan) as writer:
        for index in range(runs_):
            record = make_record(plan, index, raw=("measure.stdout", "deep/er"))
            at = writer.staging / f"{record.run_id}-1"
            (at / "deep").mkdir(parents=True)
            (at / "measure.stdout").write_text(f"{index}\n")
            (at / "deep" / "er").write_text("same\n")
            writer.commit(record)
        if (ending := ending_of(plan, StudyState.from_records(writer.records()))) is not None:
            writer.end(ending)
    return place


def content(place: StorePlace) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    with open_store(place).reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in (study, facts, runs, raw_files, endings)
        }


def test_there_and_back_again_is_the_same_store(place: StorePlace, tmp_path: Path) -> None:
    first = made(parse_store_url(tmp_path / "first"))
    assert copy(first, place).attempts == 4
    assert copy(place, tmp_path / "second").attempts == 4
    assert content(first) == content(place) == content(parse_store_url(tmp_path / "second"))
    assert content(first)["endings"]
    for each in (first, place, parse_store_url(tmp_path / "second")):
        assert verify(open_store(each)) == ()
    record = open_store(place).records()[2]
    assert open_store(tmp_path / "second").raw(record, "measure.stdout").read_text() == "2\n"


def test_a_copy_that_was_broken_off_goes_on(
    place: StorePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(parse_store_url(tmp_path / "first"))
    monkeypatch.setattr(copying, "_AT_ONCE", 1)
    stages, copy_some = [], copying._copy_some

    def broken(*parts: object) -> None:
        stages.append(parts)
        if len(stages) == 3:
            raise KeyboardInterrupt
        copy_some(*parts)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(copying, "_copy_some", broken)
    with pytest.raises(KeyboardInterrupt):
        copy(first, place)
    assert len(open_store(place).records()) == 2
    done = CliRunner().invoke(app, ["store", "copy", str(first), str(place)])
    assert done.stdout == f"{place}: 4 attempts copied, 2 of them earlier\n"
    assert content(first) == content(place)


def test_a_study_goes_on_in_its_copy(place: StorePlace, tmp_path: Path) -> None:
    copy(made(parse_store_url(tmp_path / "first"), runs_=1), place)
    plan = make_plan()
    with resume_store(place, plan) as writer:
        record = make_record(plan, 1)
        stage(writer, record)
        writer.commit(record)
    assert len(open_store(place).records()) == 2
    assert verify(open_store(place)) == ()


def test_another_study_is_never_written_over(place: StorePlace, tmp_path: Path) -> None:
    made(place)
    with pytest.raises(StoreError, match="holds another study"):
        copy(made(parse_store_url(tmp_path / "first")), place)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(StoreError, match="a directory with other content"):
        copy(place, tmp_path / "other")


def test_what_is_damaged_is_not_copied(place: StorePlace, tmp_path: Path, database: DatabaseServer) -> None:
    first = made(parse_store_url(tmp_path / "first"))
    damaged = open_store(first).raw(open_store(first).records()[3], "measure.stdout")
    damaged.write_text("x\n")
    with pytest.raises(StoreError, match=r"measure.stdout in .* is not what was committed"):
        copy(first, place)
    assert open_store(place).records() == ()
