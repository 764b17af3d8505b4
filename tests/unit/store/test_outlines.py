"""What is read of attempts without reading their records counts as the records do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tare.plan.model import Plan
from tare.record.run_record import Phase, PhaseTime
from tare.record.turns import Rotation
from tare.run.resume import StudyState
from tare.store import open_store, resume_store
from tare.store.outlines import outlines, state_of

DUET = {
    "partner": "b",
    "cpus": ["0", "1"],
    "halves": [{"windows": 2, "throughput_per_s": rate} for rate in (4.0, 9.0)],
}
CHOICE = {"measure_s": 3.0, "windows": 3, "window_s": 1.0, "pilot_s": 1.0, "most_s": 10.0, "within": None,
          "between": None, "why_not": None}  # fmt: skip
TIMES = tuple(
    PhaseTime(phase=phase, began_at=1.0, seconds=seconds)
    for phase, seconds in ((Phase.LOAD, 3.0), (Phase.MEASURE, 5.0))
)


@pytest.fixture
def large(path: Path, plan_of: Any, make: Any, staged: Any) -> Path:
    """Six blocks: failed attempts, a duet, a rotation, a choice, emulated sides, runs without a measurement."""
    plan = plan_of(blocks=6)
    changes: dict[int, dict[str, Any]] = {
        1: {"duet": DUET, "phases": TIMES},
        3: {"emulated": ("client",), "site": "north"},
        6: {"duet": {"partner": "b", "cpus": [], "halves": None}},
        7: {"measurement": None, "notices": ()},
        8: {"emulated": ("sut",), "effective": None},
        9: {"pilot": CHOICE},
        10: {"rotation": Rotation(arms=7, turn_ms=100, settle_ms=20, numbers=(1,)), "phases": TIMES},
    }
    with resume_store(path, plan) as writer:
        for index in range(len(plan.runs)):
            attempts = [make(plan, index, ok=False)] if index % 4 == 0 else []
            attempts.append(make(plan, index, attempt=len(attempts) + 1, **changes.get(index, {})))
            for record in attempts:
                staged(writer, record)
                writer.commit(record)
    return path


def test_a_state_from_outlines_is_that_from_records(large: Path) -> None:
    store = open_store(large)
    assert state_of(store) == StudyState.from_records(store.records())
    (turns,) = [record.run_id for record in store.records() if record.rotation is not None]
    assert state_of(store).seconds[turns] == pytest.approx(3.0 + 5.0 / 7)
    assert state_of(store).choice is not None
    assert set(state_of(store).emulated) == {"a", "b"}
    assert len(state_of(store).pilot) == 8


def test_outlines_come_in_the_order_of_commits_and_only_those_after_a_row(large: Path) -> None:
    store = open_store(large)
    listed = outlines(store)
    assert [outline.row for outline in listed] == sorted(outline.row for outline in listed)
    assert outlines(store, listed[4].row) == listed[5:]
    assert {outline.site for outline in listed} == {None, "north"}


def test_one_record_is_read_by_its_name(large: Path) -> None:
    store = open_store(large)
    for record in store.records():
        assert store.record(record.run_id, record.attempt) == record


def test_attempts_that_share_a_setup_share_it_in_memory_and_in_the_database(
    path: Path, plan: Plan, make: Any, staged: Any
) -> None:
    with resume_store(path, plan) as writer:
        for index in range(4):
            record = make(plan, index)
            staged(writer, record)
            writer.commit(record)
        with writer.reading() as connection:
            bodies = connection.exec_driver_sql(
                "SELECT count(*) FROM facts WHERE body LIKE '%plan_digest%'"
            ).scalar_one()
            text = connection.exec_driver_sql("SELECT record FROM runs").scalars().first()
    assert bodies == 2, "one an arm"
    assert '"settings"' not in str(text)
    a, b = ([record for record in open_store(path).records() if record.arm == arm] for arm in ("a", "b"))
    assert a[0].settings is a[1].settings
    assert a[0].settings is not b[0].settings
