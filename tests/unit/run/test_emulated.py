"""Which sides of a run were emulated: told by what was started, kept in the record, and told at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.run.conftest import Rig, make_plan

from tare.deployments.registry import DEPLOYMENTS
from tare.plan.model import Plan
from tare.record.emulated import emulated_arms, shown_names
from tare.record.run_record import Phase
from tare.run.events import Emulated, PhaseStarted
from tare.run.parity.compare import differences
from tare.run.resume import StudyState
from tare.store import open_store, resume_store
from tare.store.outlines import outlines


def emulating(plan: Plan, *sides: str) -> Plan:
    """The plan with these sides on an emulated CPU."""
    study = plan.study
    arms = []
    for arm in study.arms:
        settings = arm.settings
        placed = {
            side: placement.model_copy(update={"deployment": "fake-emulated"})
            for side, placement in settings.sides.items()
            if side in sides
        }
        arms.append(arm.model_copy(update={"settings": settings.model_copy(update=placed)}))
    return plan.model_copy(update={"study": study.model_copy(update={"arms": tuple(arms)})})


@pytest.fixture
def emulated_rig(rig: Rig) -> Rig:
    rig.swap(deployments={name: DEPLOYMENTS[name] for name in ("fake", "fake-emulated")})
    return rig


@pytest.mark.parametrize("sides", [("sut",), ("client",), ("sut", "client")])
def test_the_record_says_which_sides_were_emulated(emulated_rig: Rig, sides: tuple[str, ...]) -> None:
    (record,) = emulated_rig.execute(emulating(make_plan(), *sides))
    assert record.outcome.ok, record.outcome.reason
    assert record.emulated == sides


def test_nothing_is_said_where_nothing_was(rig: Rig) -> None:
    (record,) = rig.execute(make_plan())
    assert record.emulated == ()
    assert not any(isinstance(event, Emulated) for event in rig.events)


def test_who_watches_is_told_before_anything_is_measured(emulated_rig: Rig) -> None:
    emulated_rig.execute(emulating(make_plan(), "sut"))
    kinds = [
        event.phase if isinstance(event, PhaseStarted) else type(event)
        for event in emulated_rig.events
        if isinstance(event, PhaseStarted | Emulated)
    ]
    assert kinds.index(Emulated) < kinds.index(Phase.MEASURE)


def test_a_failed_run_says_it_too(emulated_rig: Rig) -> None:
    (record,) = emulated_rig.execute(emulating(make_plan(fault="crash"), "sut"))
    assert not record.outcome.ok
    assert record.emulated == ("sut",)


def test_a_run_on_a_real_cpu_is_none_of_an_emulated_arm(emulated_rig: Rig) -> None:
    plan = make_plan()
    (real,) = emulated_rig.execute(plan)
    other = real.model_copy(update={"emulated": ("sut",)})
    assert "emulated CPU" in str(differences(plan.study, real, other)[0])


def test_store_and_outline_know_it(emulated_rig: Rig, tmp_path: Path) -> None:
    plan = emulating(make_plan(arms=("plain", "guest")), "sut")
    path = tmp_path / "store"
    with resume_store(path, plan) as writer:
        for record in emulated_rig.execute(plan):
            writer.commit(record.model_copy(update={"raw": ()}))
    store = open_store(path)
    assert {record.emulated for record in store.records()} == {("sut",)}
    assert {outline.made.emulated for outline in outlines(store)} == {("sut",)}
    assert set(StudyState.from_records(store.records()).emulated) == {"plain", "guest"}


def test_names_of_people_are_never_the_same_twice() -> None:
    plan = make_plan(arms=("guest", "(emulated) guest"))
    names = shown_names(plan.study, {"guest": ("sut",)})
    assert len(set(names.values())) == 2
    assert emulated_arms(()) == {}
