"""Several tares on one store in a real PostgreSQL: no run twice, whoever is killed and whatever is cut."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from tests import preloaded
from tests.integration.stores.servers import DatabaseServer
from tests.unit.store.conftest import make_plan, make_record, stage

from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.run.claims import EVERYTHING
from tare.store import open_store, resume_store, shared_writer, verify
from tare.store.shared_writer import SharedWriter
from tare.store.write import insert_rows
from tare.store_place import StorePlace, parse_store_url

ROOT = Path(__file__).parents[3]
LIMIT_S = 120


@contextmanager
def writing(place: StorePlace, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedWriter]:
    """A tare with a home of its own."""
    monkeypatch.setenv("TARE_HOME", str(home))
    with resume_store(parse_store_url(str(place)), make_plan(blocks=4)) as writer:
        assert isinstance(writer, SharedWriter)
        yield writer


@pytest.fixture
def pair(
    place: StorePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SharedWriter, SharedWriter]]:
    with writing(place, tmp_path / "a", monkeypatch) as one, writing(place, tmp_path / "b", monkeypatch) as other:
        yield one, other


def make(writer: SharedWriter, index: int, attempt: int = 1) -> RunRecord:
    record = make_record(writer.plan, index, attempt=attempt)
    stage(writer, record, f"{index}\n")
    return record


def test_a_block_is_one_tares_until_it_is_given_back(pair: tuple[SharedWriter, SharedWriter]) -> None:
    one, other = pair
    assert one.take(1)
    assert one.take(1)
    assert not other.take(1)
    assert other.take(2)
    assert not one.take(EVERYTHING)
    one.give_back(1)
    assert other.take(1)


def test_all_blocks_are_had_alone(pair: tuple[SharedWriter, SharedWriter]) -> None:
    one, other = pair
    one.alone()
    assert one.take(3)
    assert not other.take(3)
    with pytest.raises(StoreError, match="another tare is running blocks"):
        other.alone()


def test_what_ends_gives_its_blocks_back(
    place: StorePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(place, tmp_path / "a", monkeypatch) as one:
        with writing(place, tmp_path / "b", monkeypatch) as other:
            other.alone()
            assert not one.take(1)
        assert one.take(1)


def test_news_are_told_once(pair: tuple[SharedWriter, SharedWriter]) -> None:
    one, other = pair
    assert other.news() == ()
    record = make(one, 0)
    one.commit(record)
    assert list(other.news()) == [record]
    assert list(other.news()) == []


def test_a_tare_that_was_not_heard_of_loses_its_blocks_and_cannot_commit(
    place: StorePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: DatabaseServer
) -> None:
    with writing(place, tmp_path / "a", monkeypatch) as one, writing(place, tmp_path / "b", monkeypatch) as other:
        assert one.take(1)
        late = make(one, 0)
        database.query(f'UPDATE "{place.name}".claims SET until = 0', "benchmarks")
        assert other.take(1)
        with pytest.raises(StoreError, match=r"writes the same blocks .* are left out"):
            one.commit(late)
        other.commit(make(other, 0))
    assert [record.attempt for record in open_store(place).records()] == [1]
    assert verify(open_store(place)) == ()


def test_a_run_that_another_has_made_meanwhile_is_left_out(
    pair: tuple[SharedWriter, SharedWriter], place: StorePlace
) -> None:
    one, other = pair
    late = make(one, 0)
    other.commit(make(other, 0))
    other.give_back(1)
    with pytest.raises(StoreError, match=r"another tare has made .* meanwhile"):
        one.commit(late)
    assert len(open_store(place).records()) == 1


def test_claims_are_renewed(place: StorePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_writer, "LEASE_S", 1.0)
    with writing(place, tmp_path / "a", monkeypatch) as one, writing(place, tmp_path / "b", monkeypatch) as other:
        assert one.take(1)
        for _ in range(8):
            time.sleep(0.4)
            assert not other.take(1)


def test_a_server_that_is_restarted_is_waited_for(
    pair: tuple[SharedWriter, SharedWriter], place: StorePlace, database: DatabaseServer
) -> None:
    one, _ = pair
    assert one.take(1)
    database.stop()
    starting = threading.Timer(3, database.start)
    starting.start()
    try:
        one.commit(make(one, 0))
    finally:
        starting.join()
    assert len(open_store(place).records()) == 1
    assert verify(open_store(place)) == ()


def test_a_connection_that_is_cut_in_the_middle_of_a_commit_makes_no_second_one(
    pair: tuple[SharedWriter, SharedWriter],
    place: StorePlace,
    database: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the commit, so that it did not happen, and after it, so that it did and is not known."""
    one, _ = pair
    cut_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tare'"
    cut = f"{cut_all} AND query LIKE 'INSERT INTO%'"

    def cut_before(connection: Connection, *rows: Any) -> None:
        monkeypatch.setattr(shared_writer, "insert_rows", insert_rows)
        insert_rows(connection, *rows)
        assert database.query(cut, "benchmarks").startswith("t")

    monkeypatch.setattr(shared_writer, "insert_rows", cut_before)
    one.commit(make(one, 0))

    def cut_after(connection: Connection, *rows: Any) -> None:
        monkeypatch.setattr(shared_writer, "insert_rows", insert_rows)
        insert_rows(connection, *rows)
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.commit()
        database.query(cut_all, "benchmarks")

    monkeypatch.setattr(shared_writer, "insert_rows", cut_after)
    one.commit(make(one, 1))
    read = open_store(place)
    assert [record.run_id for record in read.records()] == [run.id for run in read.plan.runs[:2]]
    assert verify(read) == ()


class Tare:
    """A process that makes blocks of the store; its output goes to a file."""

    def __init__(self, place: StorePlace, site: str, blocks: int, lease_s: float, at: Path) -> None:
        words = [sys.executable, "-m", "tests.integration.stores.coordinator", str(place), site, str(blocks)]
        at.mkdir(exist_ok=True)
        self.log = at / "log"
        environment = {**os.environ, "TARE_HOME": str(at / "home"), "PYTHONPATH": str(ROOT)}
        with self.log.open("ab") as log:
            self.process = preloaded.Popen(
                [*words, str(lease_s), str(at / "machine")], stdout=log, stderr=log, cwd=ROOT, env=environment
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=LIMIT_S)

    def ended(self) -> int:
        return self.process.wait(timeout=LIMIT_S)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_tares_that_are_killed_at_random_make_every_run_once(
    place: StorePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten kills by SIGKILL; now and then one is stopped beyond its lease before."""
    seed = int(os.environ.get("TARE_SEED", "20"))
    dice, blocks, lease_s = random.Random(seed), 24, 3.0
    sites = ("north", "south")
    tares = {site: Tare(place, site, blocks, lease_s, tmp_path / site) for site in sites}
    try:
        for _ in range(10):
            time.sleep(dice.uniform(0.5, 8.0))
            site = dice.choice(sites)
            if dice.random() < 0.3:
                tares[site].process.send_signal(signal.SIGSTOP)
                time.sleep(1.5 * lease_s)
                tares[site].process.send_signal(signal.SIGCONT)
            tares[site].kill()
            tares[site] = Tare(place, site, blocks, lease_s, tmp_path / site)
        for site in sites:
            tares[site].ended()
        for site in sites:  # a block that was begun on a site is finished there
            tares[site] = Tare(place, site, blocks, lease_s, tmp_path / site)
            assert tares[site].ended() == 0, tares[site].log.read_text()
    finally:
        for each in tares.values():
            if each.process.poll() is None:
                each.kill()
    read = open_store(place)
    good = Counter(record.run_id for record in read.records() if record.outcome.ok)
    assert good == {run.id: 1 for run in read.plan.runs}, f"TARE_SEED={seed}"
    assert verify(read) == ()
    by_block = {(record.block, record.site) for record in read.records() if record.outcome.ok}
    assert len(by_block) == blocks
    assert {site for _, site in by_block} == set(sites)


@pytest.mark.slow
def test_two_tares_share_the_blocks_and_each_run_is_made_once(place: StorePlace, tmp_path: Path) -> None:
    tares = [Tare(place, site, 6, 30.0, tmp_path / site) for site in ("north", "south")]
    for each in tares:
        assert each.ended() == 0, each.log.read_text()
    read = open_store(place)
    assert [record.run_id for record in read.records()] == [run.id for run in read.plan.runs]
    assert {record.site for record in read.records()} <= {"north", "south"}
    assert verify(read) == ()


@pytest.mark.slow
def test_a_tare_without_a_site_has_the_study_alone(place: StorePlace, tmp_path: Path) -> None:
    tares = [Tare(place, "-", 3, 30.0, tmp_path / name) for name in ("one", "other")]
    for each in tares:
        assert each.ended() == 0, each.log.read_text()
    read = open_store(place)
    assert [record.run_id for record in read.records()] == [run.id for run in read.plan.runs]
    makers = [each.log.read_text().count("committed [") for each in tares]
    assert sorted(makers) == [0, 6]
    assert any("another tare is running the remaining blocks" in each.log.read_text() for each in tares)
