"""The pilot of a running study: what later runs are made by, and that going on chooses the same."""

from __future__ import annotations

from typing import Any

import pytest

from tare.errors import StudyError
from tare.plan.model import Plan
from tare.protocols.pilot import BLOCKS
from tare.record.pilot import Choice
from tare.record.run_record import Outcome, RunRecord
from tare.report import terminal
from tare.report.content import build_report
from tare.run.events import MeasureChosen
from tare.run.resume import StudyState, choice_of, plan_of
from tare.study.protocol_spec import InterleaveSpec
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.study.starter import starter


@pytest.fixture(scope="module")
def plan(plans: Any) -> Plan:
    spec = InterleaveSpec(blocks=6, measure="auto", measure_most_s=0.4, target=None)
    made: Plan = plans(protocol=spec, measure_s=0.2, window_s=0.05)
    return made


@pytest.fixture(scope="module")
def rig(rigs: Any) -> Any:
    return rigs()


@pytest.fixture(scope="module")
def records(rig: Any, plan: Plan) -> list[RunRecord]:
    """Run once: they are only looked at."""
    made: list[RunRecord] = rig.execute(plan)
    return made


def measured_s(record: RunRecord) -> float:
    return float(record.settings["workload"]["measure_s"])


def test_runs_after_the_pilot_are_made_by_the_choice_and_say_so(rig: Any, plan: Plan, records: Any) -> None:
    assert [record.outcome.reason for record in records if not record.outcome.ok] == []
    pilot, later = ([record for record in records if (record.block <= BLOCKS) is first] for first in (True, False))
    (choice,) = [event.choice for event in rig.events if isinstance(event, MeasureChosen)]
    assert isinstance(choice, Choice)
    assert {record.pilot is None for record in pilot} == {True}
    assert {measured_s(record) for record in pilot} == {0.2}
    assert {record.pilot for record in later} == {choice}
    assert {measured_s(record) for record in later} == {choice.measure_s}
    assert 0.2 <= choice.measure_s <= 0.4
    assert choice.restart_s is not None
    assert {record.plan_digest for record in records} == {plan.digest}


def test_a_study_that_is_gone_on_with_chooses_the_same(plan: Plan, records: Any) -> None:
    whole = choice_of(plan, StudyState.from_records(records))
    for made in range(len(records) + 1):
        choice = choice_of(plan, StudyState.from_records(records[:made]))
        if made < BLOCKS * 2:
            assert choice is None
        else:
            assert choice == whole


def test_a_run_of_the_pilot_that_is_made_good_later_changes_nothing(plan: Plan, records: Any) -> None:
    failed = records[1].model_copy(update={"outcome": Outcome(ok=False, reason="told to"), "measurement": None})
    before = [records[0], failed, *records[2:8]]
    choice = choice_of(plan, StudyState.from_records(before))
    assert choice is not None
    later = records[8].model_copy(update={"pilot": choice})
    mended = records[1].model_copy(update={"attempt": 2})
    assert choice_of(plan, StudyState.from_records([*before, later])) == choice
    assert choice_of(plan, StudyState.from_records([*before, later, mended])) == choice
    (again,) = [run for run in plan.runs if run.id == mended.run_id]
    assert plan_of(plan, again, choice) is plan


def test_a_length_that_is_set_is_never_chosen(plans: Any) -> None:
    plain = plans(protocol=InterleaveSpec(blocks=6))
    assert choice_of(plain, StudyState()) is None
    assert plan_of(plain, plain.runs[-1], None) is plain


def test_the_report_tells_of_the_pilot(plan: Plan, records: Any) -> None:
    text = " ".join(terminal.render(build_report(plan.study, records), width=120).split())
    assert "Blocks 1 to 4 are a pilot" in text
    assert "the measure phase of a run is " in text


def test_the_report_tells_of_a_cap_that_was_raised(plan: Plan, records: Any) -> None:
    longer = [each.model_copy(update={"plan_digest": "f" * 64}) if each.block > 5 else each for each in records]
    text = " ".join(terminal.render(build_report(plan.study, longer), width=120).split())
    assert "The study was extended once" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"  measure_s: 10": "  measure_s: 3"}, "workload.measure_s: a pilot needs 4 windows per run"),
        (
            {"  seed: 1 ": "  measure_most_s: 2\n  seed: 1 "},
            "protocol.measure_most_s: a measure phase needs 4 windows",
        ),
        (
            {"      host: {}": "      host: {workload.measure_s: 30}"},
            "workload.measure_s differs between arms",
        ),
    ],
)
def test_a_pilot_that_could_not_tell_is_refused_with_its_place(changes: dict[str, str], message: str) -> None:
    text = (
        starter("tiny")
        .replace("name: rotate", "name: interleave\n  measure: auto")
        .replace("generations", "blocks")
    )
    text = text.replace('  cpus: ["0", "1"] ', "").replace("workload.measure_s: 3", "workload.measure_s: 4")
    loads(text, installed())
    for old, new in changes.items():
        text = text.replace(old, new, 1)
    with pytest.raises(StudyError) as caught:
        loads(text, installed())
    assert message in str(caught.value)
