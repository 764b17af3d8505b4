"""Stores that older versions of tare wrote must stay readable; the golden ones are never written anew."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import Connection

from tare.record.run_record import RunRecord
from tare.store import open_store, read, resume, resume_store, verify
from tare.store import schema as migrations
from tare.store.schema import FORMAT, MIGRATIONS, Step, bring_up_to_date, connect, pragma

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
FORMATS = sorted(int(path.name.removeprefix("store-")) for path in GOLDEN.glob("store-*"))


def golden(number: int, path: Path) -> tuple[RunRecord, ...]:
    """Set up the golden store of a format at `path`; what must be read from it."""
    (path / "raw").mkdir(parents=True)
    (path / "staging").mkdir()
    (path / "lock").touch()
    database = sqlite3.connect(path / "store.sqlite")
    database.executescript((GOLDEN / f"store-{number}" / "store.sql").read_text())
    database.close()
    document = json.loads((GOLDEN / f"store-{number}" / "records.json").read_text())
    return tuple(RunRecord.model_validate_json(json.dumps(tree)) for tree in document)


def test_every_format_has_a_golden_store_and_a_step_to_the_next() -> None:
    assert list(range(1, FORMAT + 1)) == FORMATS
    assert sorted(MIGRATIONS) == list(range(FORMAT))


@pytest.mark.parametrize("number", FORMATS)
def test_a_golden_store_reads_as_it_was_written(number: int, path: Path) -> None:
    records = golden(number, path)
    before = (path / "store.sqlite").read_bytes()
    assert open_store(path).records() == records
    assert (path / "store.sqlite").read_bytes() == before


@pytest.mark.parametrize("number", FORMATS)
def test_no_record_of_a_golden_store_is_taken_for_changed(number: int, path: Path) -> None:
    golden(number, path)
    assert not [line for line in verify(open_store(path)) if "not what was committed" in line]


@pytest.mark.parametrize("number", FORMATS)
def test_a_golden_store_can_be_resumed(number: int, path: Path) -> None:
    records = golden(number, path)
    with resume_store(path, open_store(path).plan) as writer:
        assert writer.records() == records
        with writer.reading() as connection:
            assert pragma(connection, "user_version") == FORMAT


def _ahead(monkeypatch: pytest.MonkeyPatch, step: Step) -> None:
    """Make this tare one format newer than it is."""
    steps: Mapping[int, Step] = {**MIGRATIONS, FORMAT: step}
    monkeypatch.setattr(migrations, "FORMAT", FORMAT + 1)
    monkeypatch.setattr(read, "FORMAT", FORMAT + 1)
    for module in (read, resume):
        monkeypatch.setattr(
            module, "bring_up_to_date", lambda connection, where: bring_up_to_date(connection, where, steps)
        )


def _rename_an_arm(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN extra TEXT")
    connection.exec_driver_sql('UPDATE runs SET record = replace(record, \'"arm":"a"\', \'"arm":"A"\')')


def test_an_older_store_is_migrated_in_memory_for_a_reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden(FORMAT, path)
    before = (path / "store.sqlite").read_bytes()
    _ahead(monkeypatch, _rename_an_arm)
    assert "A" in {record.arm for record in open_store(path).records()}
    assert (path / "store.sqlite").read_bytes() == before


def test_an_older_store_is_migrated_on_disk_for_a_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden(FORMAT, path)
    plan = open_store(path).plan
    _ahead(monkeypatch, _rename_an_arm)
    for _ in range(2):  # the second time there is nothing to migrate
        with resume_store(path, plan) as writer:
            assert "A" in {record.arm for record in writer.records()}
            with writer.reading() as connection:
                assert pragma(connection, "user_version") == FORMAT + 1


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = golden(FORMAT, path)
    plan = open_store(path).plan

    def half(connection: Connection) -> None:
        _rename_an_arm(connection)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        _ahead(context, half)
        with pytest.raises(Exception, match="No space left"), resume_store(path, plan):
            pytest.fail("half a migration was taken")
    assert open_store(path).records() == records
    with connect(path / "store.sqlite", read_only=True).connect() as connection:
        assert pragma(connection, "user_version") == FORMAT
