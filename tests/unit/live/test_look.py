"""Stores that are empty, newer, in use, gone: what is seen of them, and that seeing changes nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.live.conftest import commit, fill, plan_of
from tests.unit.store.conftest import make_record

from tare.analyze.timelines.series import Point
from tare.errors import StoreError
from tare.live import look
from tare.live.drawings import series, trace
from tare.live.known import STEPS, counts
from tare.live.look import StoreReader
from tare.live.status_file import StatusWriter
from tare.live.under_way import Seen
from tare.record.load_time import LoadTime
from tare.record.run_record import Phase
from tare.record.usage import Usage
from tare.run.events import PhaseStarted, RunStarted
from tare.run.resume import StudyState, decision
from tare.store import Store, open_store, resume_store
from tare.store.files import holder
from tare.store.outlines import Outline, outlines
from tare.study.protocol_spec import InterleaveSpec


def test_a_newer_store_is_refused_when_the_page_is_started(store: Path) -> None:
    with sqlite3.connect(store / "store.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer tare"):
        StoreReader.at(store)


def test_where_there_is_no_store_the_page_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        StoreReader.at(tmp_path / "nowhere")


def test_a_store_that_vanishes_keeps_what_was_seen_and_says_so_until_it_is_back(store: Path) -> None:
    reader = StoreReader.at(store)
    moved = store.rename(store.with_name("moved"))
    gone = reader.look()
    assert gone.problem is not None
    assert "there is no store" in gone.problem
    assert gone.known is not None
    assert len(gone.known.attempts) == 3
    shutil.copytree(moved, store)
    assert reader.look().problem is None


def test_a_store_in_use_is_seen_to_be_without_touching_its_lock(store: Path) -> None:
    assert not StoreReader.at(store).view.running
    with resume_store(store, plan_of()):
        assert holder(store / "lock") == os.getpid()
        assert StoreReader.at(store).view.running
    assert holder(store / "lock") is None


def test_a_lock_file_that_names_a_process_which_does_not_hold_it_counts_for_nothing(store: Path) -> None:
    (store / "lock").write_text(f"{os.getpid()}\n")
    assert holder(store / "lock") is None
    assert holder(store / "lock", locks=store / "no-such-list") is None


def test_the_run_under_way_is_told_with_its_phase_only_while_its_process_holds_the_store(store: Path) -> None:
    plan = plan_of()
    with resume_store(store, plan) as writer:
        herald = StatusWriter(writer.now, plan, writer.id, store / "work", clock=lambda: 1_700_000_000.0)
        herald.take(RunStarted(plan.runs[3], 1))
        herald.take(PhaseStarted(plan.runs[3], Phase.MEASURE, 30.0))
        (run,) = StoreReader.at(store).view.under_way
        assert (run.run_id, run.phase, run.expected_s) == (plan.runs[3].id, Phase.MEASURE, 30.0)
        assert run.phase_began_at == 1_700_000_000.0
    assert StoreReader.at(store).view.under_way == ()


def test_what_the_last_run_used_stays_until_another_tells_and_no_longer_than_the_session(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of()

    def seen(run_id: str, *values: float) -> Seen:
        points = [Point("CPU, cores", "SUT", second, value) for second, value in enumerate(values)]
        return Seen(run_id, "a", None, None, None, (), points, ())

    reader = StoreReader.at(store)
    with resume_store(store, plan) as writer:
        StatusWriter(writer.now, plan, writer.id, store / "work").take(RunStarted(plan.runs[3], 1))
        for told, shown in (
            ([seen("one", 1.0)], ["one"]),
            ([], ["one"]),
            ([seen("two")], ["one"]),
            ([seen("two", 2.0)], ["two"]),
        ):
            monkeypatch.setattr(reader.looker, "look", lambda _, told=told: iter(told))
            assert [each.run_id for each in reader.look().traced] == shown
            assert {line["run"] for line in trace(reader.view)} == set(shown)
    assert reader.look().traced == ()


def test_the_last_run_s_windows_stand_where_they_were_in_its_trace(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was measured from 112 on, drove from 115 on, and its trace began at 100; the next has no figures yet."""
    plan = plan_of()
    measured = {"unit": "requests", "throughput_per_s": 5.0, "windows": [{"end_s": 2.0, "throughput_per_s": 5.0}]}
    usage = Usage(began_monotonic_s=112.0, ended_monotonic_s=119.0)
    driven = LoadTime(115.0, 117.0, "generator")
    lines = [Point("CPU, cores", "SUT", 1.0, 1.0)]
    with resume_store(path, plan) as writer:
        fill(writer, plan, (0,), measurement=measured, usage=replace(usage, driven=driven))
        reader = StoreReader.at(path)
        assert series(reader.view)["runs"][0]["points"] == [[4.0, 5.0, None]], "since measuring began"
        StatusWriter(writer.now, plan, writer.id, path / "work").take(RunStarted(plan.runs[1], 1))
        seen = Seen(plan.runs[0].id, "a", None, None, None, (), lines, (), zero_s=100.0)
        monkeypatch.setattr(reader.looker, "look", lambda _: iter([seen]))
        assert series(reader.look())["runs"][0]["points"] == [[16.0, 5.0, None]]
        fill(writer, plan, (1,), measurement=measured, usage=usage)
        assert series(reader.look())["runs"][0]["points"] == [[1.0, 5.0, None]], "an older record"


def test_runs_that_a_cap_on_time_will_not_allow_are_not_expected(path: Path) -> None:
    plan = plan_of(blocks=50)
    capped = plan.study.model_copy(
        update={"protocol": InterleaveSpec(name="interleave", blocks=50, max_minutes=0.25)}
    )
    plan = plan.model_copy(update={"study": capped})
    with resume_store(path, plan) as writer:
        first = StoreReader.at(path).view
        assert (first.fixed, first.blocks, first.expected) == (False, None, 100)
        fill(writer, plan, (0, 1))
    view = StoreReader.at(path).view
    assert view.known is not None
    run_s = view.known.done.seconds[plan.runs[0].id]
    assert view.blocks == int(15 // (2 * run_s)) == 6
    assert view.expected == 12
    assert view.left_s == pytest.approx(10 * run_s)


def test_new_runs_are_read_without_reading_the_old_ones_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, plan = StoreReader.at(store), plan_of()
    before = reader.view.known
    with resume_store(store, plan) as writer:
        commit(writer, make_record(plan, 2, attempt=2))
        commit(writer, make_record(plan, 3))
    asked: list[int] = []

    def counted(store: Store, after: int, seen: Collection[tuple[str, int]]) -> tuple[Outline, ...]:
        asked.append(after)
        return outlines(store, after, seen)

    monkeypatch.setattr("tare.live.known.outlines", counted)
    known = reader.look().known
    assert asked == [3]
    assert before is not None
    assert known is not None
    assert len(known.trail) == 2
    assert known.decision == decision(known.plan, StudyState.from_records(open_store(store).records()))
    assert reader.look().known is known


def test_an_unchanged_store_is_not_opened_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = StoreReader.at(store)
    monkeypatch.setattr(look, "open_store", lambda path: pytest.fail("it was opened"))
    reader.look()


def _content(folder: Path) -> Mapping[str, str]:
    """SQLite's own files beside a database in WAL mode, which readers share with the writer, left out."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(("-wal", "-shm"))]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_looking_changes_no_file(store: Path) -> None:
    before = _content(store)
    reader = StoreReader.at(store)
    reader.look()
    assert _content(store) == before


@pytest.mark.parametrize("blocks", [0, 1, 59, 60, 61, 120, 121, 1000, 100_000])
def test_of_many_blocks_the_trail_tells_some_and_always_the_last(blocks: int) -> None:
    told_of = counts(blocks)
    assert len(told_of) <= STEPS + 1
    assert told_of[-1:] == ((blocks,) if blocks else ())
    assert blocks > STEPS or told_of == tuple(range(1, blocks + 1))
    assert set(told_of[:-1]) <= set(counts(blocks + 1)) or len(counts(blocks + 1)) < len(told_of)
