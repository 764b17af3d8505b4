"""What is left of a plan is told by its records alone: a study that is gone on with decides as one that was not."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tare.plan.model import Plan
from tare.protocols.stopping import End
from tare.record.host_facts import HostFacts
from tare.record.measurement import Measurement
from tare.record.observation import Parity
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.report.content import build_report
from tare.run.ending import ending_of
from tare.run.events import BlockEnded
from tare.run.resume import StudyState, decision, finished, remaining
from tare.study.protocol_spec import InterleaveSpec

EFFECTS = {"plain": 1.0, "slow": 0.9, "alike": 1.0, "baseline-again": 1.0}


def made(plan: Plan, index: int, *, ok: bool = True, seconds: float = 6.0, noise: float = 0.005) -> RunRecord:
    """An attempt at a planned run, its throughput decided by the run."""
    run = plan.runs[index]
    rate = 1000 * EFFECTS[run.arm] * (1 + noise * random.Random(f"{run.id}").gauss())
    return RunRecord(
        run_id=run.id, attempt=1, study="tiny", scale="full", plan_digest=plan.digest, block=run.block,
        position=run.position, index=run.index, arm=run.arm, levels={}, settings={}, seed=run.seed,
        phases=(PhaseTime(phase=Phase.MEASURE, began_at=1.0, seconds=seconds),),
        host=HostFacts(), engine=None, images={},
        effective=None, parity=Parity(), path=None, raw=(),
        measurement=Measurement(throughput_per_s=rate) if ok else None,
        outcome=Outcome(ok=True) if ok else Outcome(ok=False, reason="told to", failed_in=Phase.MEASURE),
    )  # fmt: skip


def runs_of(plan: Plan, blocks: int, **how: Any) -> list[RunRecord]:
    """All runs of the first blocks."""
    return [made(plan, run.index, **how) for run in plan.runs if run.block <= blocks]


@pytest.fixture
def plan(plans: Any) -> Plan:
    made_plan: Plan = plans(arms=("plain", "slow"), protocol=InterleaveSpec(blocks=20, max_minutes=60.0))
    return made_plan


def blocks_left(plan: Plan, records: Iterable[RunRecord]) -> set[int]:
    return {run.block for run in remaining(plan, StudyState.from_records(records))}


def test_before_anything_is_made_everything_remains(plan: Plan) -> None:
    assert remaining(plan, StudyState()) == plan.runs
    assert ending_of(plan, StudyState()) is None


def test_seven_narrow_blocks_are_not_enough_and_eight_are(plan: Plan) -> None:
    assert blocks_left(plan, runs_of(plan, 7)) == set(range(8, 21))
    assert blocks_left(plan, runs_of(plan, 8)) == set()
    ending = ending_of(plan, StudyState.from_records(runs_of(plan, 8)))
    assert ending is not None
    assert (ending.reason, ending.blocks, ending.machine_s) == ("target", 8, 8 * 3 * 6.0)
    assert ending.why == "every interval is within ±2 % after 8 blocks"
    assert set(ending.arms) == {"slow", "baseline-again"}


def test_a_block_under_way_is_finished_before_anything_is_decided(plan: Plan) -> None:
    records = runs_of(plan, 8)
    assert decision(plan, StudyState.from_records(records[:-1])).end is None
    assert next(run.id for run in remaining(plan, StudyState.from_records(records[:-1]))) == plan.runs[23].id


def test_the_decision_depends_on_the_records_and_not_on_their_order(plan: Plan) -> None:
    records = runs_of(plan, 8)
    backwards = list(reversed(records))
    assert decision(plan, StudyState.from_records(backwards)) == decision(plan, StudyState.from_records(records))


def test_a_failed_run_of_an_ended_study_remains_and_may_reopen_it(plan: Plan) -> None:
    records = [*runs_of(plan, 12)[:-1], made(plan, 35, ok=False)]
    done = StudyState.from_records(records)
    assert decision(plan, done).end is End.TARGET
    assert [run.id for run in remaining(plan, done)] == [plan.runs[35].id]
    wild = made(plan, 35, noise=5.0)
    assert decision(plan, done.plus(wild)).end is None
    assert blocks_left(plan, [*records, wild]) == set(range(13, 21))


def test_time_counts_failed_attempts_and_all_sessions(plan: Plan) -> None:
    records = runs_of(plan, 4, seconds=200.0)
    assert decision(plan, StudyState.from_records(records)).end is None
    again = [*records, made(plan, 0, ok=False, seconds=1000.0)]
    ending = ending_of(plan, StudyState.from_records(again))
    assert ending is not None
    assert (ending.reason, ending.machine_s) == ("time", 3400.0)
    assert blocks_left(plan, again) == set()


def test_a_cap_tells_the_width_that_was_reached(plans: Any) -> None:
    plan = plans(arms=("plain", "slow"), protocol=InterleaveSpec(blocks=4))
    ending = ending_of(plan, StudyState.from_records(runs_of(plan, 4, noise=0.05)))
    assert ending is not None
    assert ending.reason == "blocks"
    assert "all 4 blocks were completed; widest interval ±" in ending.why
    assert ", the target was ±2 %" in ending.why
    widths = [arm.half_width for arm in ending.arms.values()]
    assert all(width is not None and width > 0 for width in widths)


def test_a_failed_run_gives_its_block_no_figure(plan: Plan) -> None:
    records = [made(plan, n, ok=plan.runs[n].arm != "slow") for n in range(3)]
    (block,) = finished(plan, StudyState.from_records(records))
    assert block.throughput_per_s["slow"] is None
    assert block.seconds == 18.0


def run_to_its_end(plan: Plan, done: StudyState, **how: Any) -> list[RunRecord]:
    """Each time the next run that remains, as a study is run on one machine."""
    records: list[RunRecord] = []
    while left := remaining(plan, done):
        records.append(made(plan, left[0].index, **how))
        done = done.plus(records[-1])
    return records


def test_an_arm_that_is_outside_of_its_margin_ends_before_the_others(plans: Any) -> None:
    protocol = InterleaveSpec(blocks=40, looks="any", margin=0.02)
    plan = plans(arms=("plain", "slow", "alike"), protocol=protocol)
    records = run_to_its_end(plan, StudyState(), noise=0.012)
    last = {arm: max(record.block for record in records if record.arm == arm) for arm in EFFECTS}
    assert 8 <= last["slow"] < last["alike"] < 40
    assert last["plain"] == last["baseline-again"] == last["alike"]
    assert all(sum(record.arm == arm for record in records) == blocks for arm, blocks in last.items())
    done = StudyState.from_records(records)
    ending = ending_of(plan, done)
    assert ending is not None
    assert (ending.reason, ending.margin, ending.blocks) == ("margin", 0.02, last["alike"])
    assert ending.why == f"every arm is shown to be within ±2 % or outside after {last['alike']} blocks"
    assert ending.arms["slow"].n == last["slow"]
    report = build_report(plan.study, records, len(plan.runs), ending)
    assert not any("block" in note and "slow" in note for note in report.notes)
    assert report.planned == len(records)


def test_a_study_with_a_margin_is_gone_on_with_as_if_it_had_not_been_broken_off(plans: Any) -> None:
    protocol = InterleaveSpec(blocks=40, looks="any", margin=0.02)
    plan = plans(arms=("plain", "slow", "alike"), protocol=protocol)
    whole = run_to_its_end(plan, StudyState(), noise=0.012)
    for cut in (10, len(whole) // 2, len(whole) - 1):
        rest = run_to_its_end(plan, StudyState.from_records(reversed(whole[:cut])), noise=0.012)
        assert rest == whole[cut:]


def test_runs_of_an_arm_that_had_ended_are_taken_in_where_they_were_made(plans: Any) -> None:
    """Of several sites, which begin blocks before it is known that an arm ends."""
    protocol = InterleaveSpec(blocks=40, looks="any", margin=0.02)
    plan = plans(arms=("plain", "slow", "alike"), protocol=protocol)
    done = StudyState.from_records(runs_of(plan, 20, noise=0.012))
    decided = decision(plan, done)
    assert (decided.blocks, decided.arms["slow"].n) == (20, 20)
    assert not any(run.arm == "slow" for run in remaining(plan, done))


def test_a_running_study_stops_when_it_knows_enough(rig: Any, plans: Any) -> None:
    spec = InterleaveSpec(blocks=40).model_copy(update={"target": 1e9, "min_blocks": 3, "look_every": 1})
    plan = plans(arms=("plain",), protocol=spec, measure_s=0.1, warmup_s=0.0)
    records = rig.execute(plan)
    assert {record.block for record in records} == {1, 2, 3}
    looks = [event.decision for event in rig.events if isinstance(event, BlockEnded)]
    assert [look.blocks for look in looks] == [1, 2, 3]
    assert [look.end for look in looks] == [None, None, End.TARGET]
    assert looks[-1] == decision(plan, StudyState.from_records(records))


def test_a_study_gone_on_with_stops_where_it_would_have(rig: Any, plans: Any) -> None:
    spec = InterleaveSpec(blocks=40).model_copy(update={"target": 1e9, "min_blocks": 3, "look_every": 1})
    plan = plans(arms=("plain",), protocol=spec, measure_s=0.1, warmup_s=0.0)
    first = [record for record, _ in zip(rig.execute(plan), range(3), strict=False)]
    later = rig.execute(plan, StudyState.from_records(first))
    assert [record.run_id for record in (*first, *later)] == [run.id for run in plan.runs[:6]]
    assert rig.execute(plan, StudyState.from_records([*first, *later])) == []
