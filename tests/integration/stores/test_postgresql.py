"""A store in a real PostgreSQL, its raw files behind fsspec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.stores.servers import PASSWORD, DatabaseServer
from tests.unit.store.conftest import make_plan, make_record, stage
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError
from tare.store import open_store, resume_store, verify
from tare.store_place import StorePlace, parse_store_url

Elsewhere = Callable[[StorePlace], StorePlace]


def filled(place: StorePlace, runs: int = 2) -> None:
    plan = make_plan()
    with resume_store(place, plan) as writer:
        for index in range(runs):
            record = make_record(plan, index)
            stage(writer, record, f"output of {index}\n")
            writer.commit(record)


def test_what_is_committed_is_read_back_unchanged_on_another_machine(
    place: StorePlace, elsewhere: Elsewhere
) -> None:
    plan = make_plan(seed=2**40)
    records = [make_record(plan, 0, ok=False), make_record(plan, 0, attempt=2), make_record(plan, 1, engine=None)]
    with resume_store(place, plan) as writer:
        for record in records:
            stage(writer, record, f"{record.run_id} {record.attempt}\n")
            writer.commit(record)
    read = open_store(elsewhere(place))
    assert read.records() == tuple(records)
    assert read.plan == plan
    assert verify(read) == ()
    assert read.raw(records[1], "measure.stdout").read_text() == f"{records[1].run_id} 2\n"
    assert read.holds(records[1], "measure.stdout")
    assert not read.holds(records[1], "trace/trace.json")


def test_a_directory_of_raw_files_is_brought_as_a_whole(place: StorePlace, elsewhere: Elsewhere) -> None:
    plan = make_plan()
    record = make_record(plan, 0, raw=("measure.stdout", "trace/cpu.parquet", "trace/trace.json"))
    with resume_store(place, plan) as writer:
        (writer.staging / f"{record.run_id}-1" / "trace").mkdir(parents=True)
        for name in record.raw:
            (writer.staging / f"{record.run_id}-1" / name).write_bytes(name.encode() * 3 * 2**20)
        writer.commit(record)
    read = open_store(elsewhere(place))
    trace = read.raw(record, "trace")
    assert sorted(path.name for path in trace.iterdir()) == ["cpu.parquet", "trace.json"]
    assert not (trace.parent / "measure.stdout").exists()
    assert (trace / "cpu.parquet").read_bytes() == b"trace/cpu.parquet" * 3 * 2**20


def test_stores_of_two_studies_lie_in_one_database(database: DatabaseServer, tmp_path: Path) -> None:
    raw = f"file://{tmp_path}/raw"
    for name, seed in (("first", 1), ("second", 2)):
        with resume_store(parse_store_url(database.url(raw, name)), make_plan(seed=seed)):
            pass
    assert open_store(parse_store_url(database.url(raw, "first"))).plan.seed == 1
    assert open_store(parse_store_url(database.url(raw, "second"))).plan.seed == 2
    with (
        pytest.raises(StoreError, match="belongs to another plan: seed is 1 there and 2 here"),
        resume_store(parse_store_url(database.url(raw, "first")), make_plan(seed=2)),
    ):
        pytest.fail("another plan was let in")


def test_an_older_plan_with_a_lower_cap_is_extended(place: StorePlace) -> None:
    filled(place)
    with resume_store(place, make_plan(blocks=3)) as writer:
        assert len(writer.plan.runs) == 6
        assert len(writer.records()) == 2


def test_a_damaged_record_and_a_damaged_file_are_named(
    place: StorePlace, database: DatabaseServer, tmp_path: Path, elsewhere: Elsewhere
) -> None:
    filled(place)
    plan = make_plan()
    first, second = plan.runs[0].id, plan.runs[1].id
    database.query(
        f"UPDATE \"{place.name}\".runs SET record = replace(record, '1234.5', '4321.5') WHERE run_id = '{first}'",
        "benchmarks",
    )
    objects = sorted((tmp_path / "raw").rglob("sha256/*/*"))
    damaged = next(path for path in objects if path.read_text() == "output of 1\n")
    damaged.write_text("output of 7\n")
    read = open_store(elsewhere(place))
    assert set(verify(read)) == {
        f"the record of {first}-1 is not what was committed",
        f"raw file {second}-1/measure.stdout was changed",
    }
    record = next(each for each in read.records() if each.run_id == second)
    with pytest.raises(StoreError, match="is not what was committed"):
        read.raw(record, "measure.stdout")
    damaged.unlink()
    with pytest.raises(StoreError, match="is not at file://"):
        read.raw(record, "measure.stdout")
    assert f"raw file {second}-1/measure.stdout is missing" in verify(read)


@pytest.mark.parametrize(
    ("user", "name", "words"),
    [
        ("nobody", "benchmarks", "authentication failed|no password|role"),
        ("tare", "absent", 'database "absent" does not exist .*createdb'),
        ("reader", "benchmarks", "grant this user USAGE on the schema"),
    ],
)  # fmt: skip
def test_what_the_server_refuses_is_one_sentence(
    database: DatabaseServer, place: StorePlace, user: str, name: str, words: str
) -> None:
    filled(place)
    url = database.url(place.raw, place.name, user=user, database=name)
    with pytest.raises(StoreError, match=words) as refused:
        open_store(parse_store_url(url))
    assert PASSWORD not in str(refused.value)
    assert refused.value.hint
    assert "\n" not in str(refused.value)


def test_a_wrong_password_is_named_and_not_shown(
    place: StorePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(place)
    monkeypatch.setenv("PGPASSWORD", "no-such-secret")
    with pytest.raises(StoreError, match=r"password authentication failed .*pgpass") as refused:
        open_store(place)
    assert "no-such-secret" not in str(refused.value)


def test_a_newer_format_is_left_alone(place: StorePlace, database: DatabaseServer) -> None:
    filled(place)
    database.query(f'UPDATE "{place.name}".store_format SET format = 99', "benchmarks")
    with pytest.raises(StoreError, match=r"written by a newer tare \(format 99.*update tare"):
        open_store(place)
    with pytest.raises(StoreError, match="written by a newer tare"), resume_store(place, make_plan()):
        pytest.fail("it was opened")


def test_a_schema_with_other_tables_is_left_alone(place: StorePlace, database: DatabaseServer) -> None:
    database.query(f'CREATE SCHEMA "{place.name}" AUTHORIZATION tare', "benchmarks")
    database.query(f'CREATE TABLE "{place.name}".others (id int)', "benchmarks")
    database.query(f'ALTER TABLE "{place.name}".others OWNER TO tare', "benchmarks")
    with pytest.raises(StoreError, match="contains other things than a store"), resume_store(place, make_plan()):
        pytest.fail("it was used")


def test_a_schema_made_by_an_administrator_is_used(place: StorePlace, database: DatabaseServer) -> None:
    database.query(f'CREATE SCHEMA "{place.name}" AUTHORIZATION tare', "benchmarks")
    filled(place)
    assert len(open_store(place).records()) == 2


def test_reading_changes_nothing_at_the_server(place: StorePlace, database: DatabaseServer) -> None:
    filled(place)
    with open_store(place).reading() as connection, pytest.raises(Exception, match="read-only transaction"):
        connection.exec_driver_sql("DELETE FROM runs")


def test_a_server_that_is_not_there_is_named(place: StorePlace) -> None:
    gone = parse_store_url(str(place).replace("127.0.0.1", "127.0.0.9"))
    with pytest.raises(StoreError, match="check that the server is up and reached from here"):
        open_store(gone)


def test_verify_and_report_take_a_url(place: StorePlace) -> None:
    filled(place)
    done = CliRunner().invoke(app, ["store", "verify", str(place)])
    assert (done.exit_code, done.stdout) == (
        0,
        f"{place} is whole: 2 attempts, each unchanged since it was committed\n",
    )
    assert "Which?" in CliRunner().invoke(app, ["report", str(place)]).stdout


def test_an_older_store_is_brought_up_to_date_by_the_next_writer(
    place: StorePlace, database: DatabaseServer
) -> None:
    """As format 4 had it: the parts that are shared now lay in the record."""
    filled(place)
    whole = open_store(place).records()
    runs_, facts_ = f'"{place.name}".runs', f'"{place.name}".facts'
    database.query(
        f"UPDATE {runs_} r SET record = (s.body::jsonb || r.record::jsonb)::text FROM {facts_} s "
        f"WHERE s.digest = r.setup; "
        f"UPDATE {runs_} r SET record = (jsonb_build_object('effective', s.body::jsonb) || r.record::jsonb)::text "
        f"FROM {facts_} s WHERE s.digest = r.effective; "
        f"ALTER TABLE {runs_} DROP COLUMN setup; ALTER TABLE {runs_} DROP COLUMN effective; "
        f'UPDATE "{place.name}".store_format SET format = 4',
        "benchmarks",
    )
    with pytest.raises(StoreError, match=r"written by an older tare \(format 4.*`tare run` with its study"):
        open_store(place)
    with resume_store(place, make_plan()) as writer:
        assert writer.records() == whole
    assert verify(open_store(place)) == ()
