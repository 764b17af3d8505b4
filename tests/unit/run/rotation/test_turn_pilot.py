"""The pilot of a rotation on fakes: which turns it drives, that its choice is used, kept and not made again."""

from __future__ import annotations

from typing import Any

import pytest

from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.protocols import turn_pilot
from tare.protocols.turn_pilot import Trial
from tare.record.pilot import TurnChoice
from tare.run.events import MeasureChosen
from tare.run.resume import StudyState
from tare.run.rotation import pilot, schedule
from tare.study.protocol_spec import RotateSpec

pytestmark = pytest.mark.timed
CHOICE = TurnChoice(turn_ms=30.0, settle_ms=12.0, rounds=11, start_s=2.0, tried=())
LENGTHS_MS = (36.0, 72.0)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """What each pilot saw; it drives few and short turns, and chooses `CHOICE`."""
    made: list[Trial] = []

    def choose(each: list[Trial], *_: Any, **__: Any) -> TurnChoice:
        made.extend(each)
        return CHOICE

    for module in (pilot, schedule):
        monkeypatch.setattr(module, "LENGTHS_MS", LENGTHS_MS)
    monkeypatch.setattr(turn_pilot, "_FREE", 6)
    monkeypatch.setattr(pilot, "choose", choose)
    return made


@pytest.fixture
def plan(plans: Any) -> Plan:
    """Two generations of a baseline and its control."""
    made: Plan = plans(protocol=RotateSpec(name="rotate", blocks=2, retries=0))
    return made


def test_the_choice_is_used_and_stands_in_each_record(
    rig: Any, plan: Plan, trials: list[Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = rig.execute(plan)
    assert [record.outcome.reason for record in records if not record.outcome.ok] == []
    assert [trial.length_ms for trial in trials] == list(LENGTHS_MS)
    for trial in trials:
        assert {arm: counts.shape for arm, counts in trial.counts.items()} == {
            "plain": (6, turn_pilot.SLICES),
            "baseline-again": (6, turn_pilot.SLICES),
        }
        assert all(counts.sum() > 0 for counts in trial.counts.values())
    for record in records:
        assert (record.rotation.turn_ms, record.rotation.settle_ms) == (30.0, 12.0)
        assert len(record.measurement.turns.operations) == 11
        assert record.measurement.turns.slices is None
        assert record.pilot == CHOICE
    (chosen,) = [event for event in rig.events if isinstance(event, MeasureChosen)]
    assert chosen.choice == CHOICE
    assert rig.leftovers == []
    assert len(records) == 4, "the pilot is no block"
    monkeypatch.setattr(pilot, "choose", lambda *_, **__: pytest.fail("chosen again"))
    again = rig.execute(plan, StudyState().plus(*records[:2]))
    assert {(record.block, record.rotation.turn_ms) for record in again} == {(2, 30.0)}


def test_a_failed_pilot_leaves_the_lengths_that_are_assumed(rig: Any, plans: Any, trials: list[Trial]) -> None:
    plan = plans(protocol=RotateSpec(name="rotate", blocks=1, retries=0, rounds=10), fault="crash")
    records = rig.execute(plan)
    assert [record.outcome.ok for record in records] == [False, False]
    assert {record.rotation.turn_ms for record in records} == {100.0}
    assert any("the pilot of turns failed" in str(event) for event in rig.events)
    assert trials == []


def test_arms_that_cannot_take_turns_end_the_study_and_say_why(
    rig: Any, plan: Plan, trials: list[Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot, "choose", lambda *_, **__: "turns of up to 480 ms: rates rise or fall")
    with pytest.raises(EnvironmentLacks, match="cannot take turns on this machine: turns of up to 480 ms"):
        rig.execute(plan)
    assert rig.leftovers == []
