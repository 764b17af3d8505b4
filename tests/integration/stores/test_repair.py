"""`tare store repair` of a store in a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.stores.servers import DatabaseServer
from tests.unit.store.conftest import make_plan, make_record, stage
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError
from tare.store import open_store, resume_store, verify
from tare.store.copying import copy
from tare.store.repair import repair
from tare.store_place import StorePlace

Elsewhere = Callable[[StorePlace], StorePlace]


@pytest.fixture
def filled(place: StorePlace) -> StorePlace:
    plan = make_plan()
    with resume_store(place, plan) as writer:
        for index in range(4):
            record = make_record(plan, index, raw=("measure.stdout", "deep/er"))
            at = writer.staging / f"{record.run_id}-1"
            (at / "deep").mkdir(parents=True)
            (at / "measure.stdout").write_text(f"output of {index}\n")
            (at / "deep" / "er").write_text(f"deeper {index}\n")
            writer.commit(record)
    return place


def object_of(place: StorePlace, text: str) -> Path:
    objects = Path(place.raw.removeprefix("file://")).rglob("sha256/*/*")
    return next(path for path in objects if path.read_text() == text)


def test_a_whole_store_becomes_the_same_in_a_directory_and_goes_back(
    filled: StorePlace, elsewhere: Elsewhere, tmp_path: Path, database: DatabaseServer
) -> None:
    seen = elsewhere(filled)
    done = repair(seen, tmp_path / "new")
    assert (len(done.kept), done.lost) == (4, {})
    new, old = open_store(tmp_path / "new"), open_store(seen)
    assert (new.records(), new.plan, new.id) == (old.records(), old.plan, old.id)
    assert new.raw(new.records()[2], "deep/er").read_text() == "deeper 2\n"
    assert verify(new) == ()
    database.query(f'DROP SCHEMA "{filled.name}" CASCADE', "benchmarks")
    assert copy(tmp_path / "new", filled).attempts == 4


def test_damage_costs_its_attempts_alone_and_the_store_stays_as_it_was(
    filled: StorePlace, elsewhere: Elsewhere, tmp_path: Path, database: DatabaseServer
) -> None:
    plan = make_plan()
    database.query(
        f"UPDATE \"{filled.name}\".runs SET record = replace(record, '1234.5', '4321.5') "
        f"WHERE run_id = '{plan.runs[0].id}'",
        "benchmarks",
    )
    object_of(filled, "output of 1\n").write_text("output of 7\n")
    object_of(filled, "deeper 3\n").unlink()
    seen = elsewhere(filled)
    before = verify(open_store(seen))
    assert len(before) == 3
    shown = CliRunner().invoke(app, ["store", "verify", str(seen)])
    assert f"`tare store repair '{seen}' --to NEW` saves the undamaged runs" in shown.stderr
    done = CliRunner().invoke(app, ["store", "repair", str(seen), "--to", str(tmp_path / "new")])
    assert done.exit_code == 1
    for index, why in (
        (0, "its record is not what was committed"),
        (1, "its raw file measure.stdout"),
        (3, "deep/er"),
    ):
        assert any(f"{plan.runs[index].id}-1" in line and why in line for line in done.stdout.splitlines())
    assert done.stdout.splitlines()[-1] == f"{tmp_path}/new: 1 attempt saved, 3 left out"
    assert verify(open_store(tmp_path / "new")) == ()
    assert verify(open_store(seen)) == before


def test_a_whole_copy_on_this_machine_saves_what_the_bucket_lost(filled: StorePlace, tmp_path: Path) -> None:
    """The tare that made the runs keeps copies; one of them was changed since, and the bucket has that one."""
    object_of(filled, "output of 1\n").unlink()
    copies = list(filled.directory.rglob("copies/*/*/measure.stdout"))
    next(path for path in copies if path.read_text() == "output of 2\n").write_text("output of 9\n")
    done = repair(filled, tmp_path / "new")
    assert (len(done.kept), done.lost) == (4, {})
    assert verify(open_store(tmp_path / "new")) == ()


def test_a_store_that_is_being_written_is_left_alone(filled: StorePlace, tmp_path: Path) -> None:
    with resume_store(filled, make_plan()) as writer:
        assert writer.claims is not None
        writer.claims.take(1)
        with pytest.raises(StoreError, match=r"is being written by tare on .* \(process"):
            repair(filled, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_page_costs_the_runs_on_it_alone(
    filled: StorePlace, tmp_path: Path, database: DatabaseServer
) -> None:
    """A byte of one run's record is turned on the disk, under the server; its checksum is found wrong."""
    plan = make_plan(blocks=12)
    with resume_store(filled, plan) as writer:
        for index in range(4, len(plan.runs)):
            record = make_record(
                plan, index, measurement={"throughput_per_s": 5.0, "unit": "x" * 3000, "windows": []}
            )
            stage(writer, record)
            writer.commit(record)
    where = database.query(f"SELECT pg_relation_filepath('\"{filled.name}\".runs')", "benchmarks")
    database.stop()
    path = database.at / "data" / where
    whole = path.read_bytes()
    assert len(whole) >= 2 * 8192
    try:
        path.write_bytes(whole[:8192] + bytes([whole[8192 + 4000] ^ 1]).join((whole[8192:12192], whole[12193:])))
        assert len(path.read_bytes()) == len(whole)
        database.start()
        with pytest.raises(StoreError, match="invalid page"):
            open_store(filled).records()
        done = repair(filled, tmp_path / "new")
    finally:
        database.stop()
        path.write_bytes(whole)
        database.start()
    assert 0 < len(done.kept) < len(plan.runs)
    lost = len(plan.runs) - len(done.kept)
    assert dict(done.lost) == {f"{lost} more": "the database cannot be read there"}
    assert verify(open_store(tmp_path / "new")) == ()
    records = {record.run_id for record in open_store(tmp_path / "new").records()}
    assert records < {run.id for run in plan.runs}
