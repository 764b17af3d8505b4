"""What a running study tells of itself, and that nobody's watching is worth a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.live.conftest import plan_of
from tests.unit.store.conftest import make_record

from tare.live.now import LARGEST_BYTES, read_now
from tare.live.status_file import StatusWriter, with_status_file
from tare.record.run_record import Phase
from tare.run.events import Event, Notice, PhaseStarted, Preparing, RunEnded, RunStarted

PLAN = plan_of()


def herald_in(folder: Path) -> StatusWriter:
    return StatusWriter(folder / "now.json", PLAN, "an-id", folder / "work", clock=lambda: 1000.0)


def test_a_session_is_told_from_its_preparation_to_its_end(tmp_path: Path) -> None:
    herald = herald_in(tmp_path)
    herald.take(Preparing("image x"))
    now = read_now(tmp_path / "now.json")
    assert now is not None
    assert now.preparing == "image x"
    for run in PLAN.runs[:2]:
        herald.take(RunStarted(run, 1))
    herald.take(PhaseStarted(PLAN.runs[1], Phase.LOAD, None))
    now = read_now(tmp_path / "now.json")
    assert now is not None
    assert now.preparing is None
    assert [run.phase for run in now.runs] == [None, Phase.LOAD]
    herald.take(RunEnded(make_record(PLAN, 0)))
    herald.take(RunEnded(make_record(PLAN, 1, ok=False)))
    herald.end("tare run has ended")
    now = read_now(tmp_path / "now.json")
    assert now is not None
    assert now.runs == ()
    assert now.over == "tare run has ended"
    texts = [line.text for line in now.log]
    assert f"{PLAN.runs[0].id}: 1,234.6 requests/s" in texts
    assert f"{PLAN.runs[1].id}: attempt 1 failed in measure: told to fail" in texts


def test_a_second_attempt_takes_the_place_of_the_first(tmp_path: Path) -> None:
    herald = herald_in(tmp_path)
    for attempt in (1, 2):
        herald.take(RunStarted(PLAN.runs[0], attempt))
    assert [run.attempt for run in herald.now.runs] == [2]


def test_a_folder_that_is_gone_and_texts_that_cannot_be_written_do_not_end_a_run(tmp_path: Path) -> None:
    herald = herald_in(tmp_path / "gone")
    heard: list[Event] = []
    with with_status_file(herald, heard.append) as observer:
        observer(Notice("\ud800"))
    assert len(heard) == 1
    herald_in(tmp_path).take(Notice("\ud800"))


def test_the_log_keeps_its_newest_lines_only(tmp_path: Path) -> None:
    herald = herald_in(tmp_path)
    for number in range(500):
        herald.take(Notice(f"{number} " + "x" * 10_000))
    assert herald.now.log[-1].text.startswith("499 ")
    assert (tmp_path / "now.json").stat().st_size < LARGEST_BYTES
    assert read_now(tmp_path / "now.json") is not None


def test_how_a_session_was_broken_off_is_told(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), with_status_file(herald_in(tmp_path), lambda _: None):
        raise KeyboardInterrupt
    now = read_now(tmp_path / "now.json")
    assert now is not None
    assert now.over == "ended by KeyboardInterrupt: "


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 99, "pid": 1, "began_at": 0, "work": ""}', "x" * 2_000_000]
)
def test_what_this_tare_does_not_understand_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "now.json").write_text(text)
    assert read_now(tmp_path / "now.json") is None


def test_a_link_in_a_store_of_somebody_else_leads_no_write_out_of_it(tmp_path: Path) -> None:
    store, outside = tmp_path / "store", tmp_path / "outside"
    store.mkdir()
    outside.write_text("kept")
    (store / f"now.json.{os.getpid()}").symlink_to(outside)
    herald_in(store).take(Preparing("image x"))
    assert outside.read_text() == "kept"
    assert read_now(store / "now.json") is not None
