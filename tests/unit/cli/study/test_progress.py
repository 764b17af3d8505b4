from __future__ import annotations

import io
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tare.cli.study.progress import Tally, display, progress, spoken
from tare.record.run_record import Phase
from tare.run.events import Notice, PhaseStarted, Preparing, RunEnded, RunStarted
from tare.run.resume import StudyState
from tare.study.protocol_spec import InterleaveSpec

MADE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "store" / "conftest.py"))
PLAN = MADE["make_plan"]()
RECORD: Callable[..., Any] = MADE["make_record"]


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def shown(tally: Tally) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(display(tally))
    return out.getvalue()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tally(clock: Clock) -> Tally:
    return Tally(PLAN, StudyState(), clock)


def test_the_display_tells_arm_block_phase_and_time(tally: Tally, clock: Clock) -> None:
    tally.take(Preparing("image mariadb"))
    clock.now += 61
    assert "preparing image mariadb (1 min 01 s)" in shown(tally)
    tally.take(RunStarted(PLAN.runs[0], 1))
    tally.take(PhaseStarted(PLAN.runs[0], Phase.MEASURE, 30.0))
    clock.now += 4
    text = shown(tally)
    assert "0 of about 4 runs, elapsed 1 min 05 s" in text
    assert f"block 1 of about 2, arm {PLAN.runs[0].arm}: measure (4 s of 30 s)" in text


def test_what_remains_goes_by_the_pace_so_far(tally: Tally, clock: Clock) -> None:
    tally.take(RunStarted(PLAN.runs[0], 1))
    clock.now += 20
    tally.take(RunEnded(RECORD(PLAN, 0)))
    assert tally.remaining_s == 60.0
    tally.take(RunStarted(PLAN.runs[1], 1))
    clock.now += 5
    assert tally.remaining_s == 55.0


def test_as_many_blocks_are_expected_as_have_begun(clock: Clock) -> None:
    """By their mean pace so far, a minute is over in the first block."""
    spec = InterleaveSpec(name="interleave", blocks=24, max_minutes=1.0, seed=1)
    plan = PLAN.model_copy(update={"study": PLAN.study.model_copy(update={"protocol": spec})})
    tally = Tally(plan, StudyState(), clock)
    for number in (0, 1):
        tally.take(RunStarted(plan.runs[number], 1))
        clock.now += 600
        tally.take(RunEnded(RECORD(plan, number)))
    assert tally.blocks == 1
    tally.take(RunStarted(plan.runs[2], 1))
    assert tally.blocks == 2


def test_before_the_first_run_the_plan_says_what_remains(tally: Tally) -> None:
    assert 0 < tally.remaining_s < 60


def test_a_failed_attempt_counts_for_nothing_and_is_told(tally: Tally) -> None:
    tally.take(RunStarted(PLAN.runs[0], 2))
    tally.take(RunEnded(RECORD(PLAN, 0, ok=False, attempt=2)))
    text = shown(tally)
    assert "0 of about 4 runs" in text
    assert "attempt 2 failed in measure: told to fail" in text


def test_a_resumed_study_begins_where_it_stopped(clock: Clock) -> None:
    assert "1 of about 4 runs" in shown(Tally(PLAN, StudyState.from_records([RECORD(PLAN, 0)]), clock))


def test_without_a_terminal_there_is_a_line_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(PLAN, StudyState(), quiet=False) as tell:
        tell(Preparing("image mariadb"))
        tell(RunStarted(PLAN.runs[0], 1))
        tell(PhaseStarted(PLAN.runs[0], Phase.LOAD, None))
        tell(RunEnded(RECORD(PLAN, 0, notices=("the directory sticks",))))
        tell(Notice("removed remains of a killed run: container x on local"))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "preparing image mariadb"
    assert lines[1].startswith(f"[1 of about 4] block 1 {PLAN.runs[0].arm}: 1,234.6 ")
    assert lines[2:] == [
        f"{PLAN.runs[0].id}: the directory sticks",
        "removed remains of a killed run: container x on local",
    ]


def test_quiet_tells_failures_only(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(PLAN, StudyState(), quiet=True) as tell:
        tell(Preparing("image mariadb"))
        tell(RunEnded(RECORD(PLAN, 0)))
        tell(RunEnded(RECORD(PLAN, 1, ok=False)))
    assert capsys.readouterr().err.split(":")[0] == PLAN.runs[1].id


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (7620, "2 h 07 min")],
)
def test_durations_are_spoken(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
