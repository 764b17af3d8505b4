"""What may be begun, where, and what a record changes, without any site or process."""

from __future__ import annotations

from typing import Any

from bench.fleet.made_up import made_up
from tare.plan.model import Plan
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.run.fleet.block_schedule import BlockSchedule
from tare.run.resume import StudyState, decision
from tare.study.protocol_spec import InterleaveSpec

SITES = ("north", "south", "east")
MEASURED = PhaseTime(phase=Phase.MEASURE, began_at=0.0, seconds=1.0)


def record(plan: Plan, index: int, site: str, *, ok: bool = True, attempt: int = 1) -> RunRecord:
    made = made_up(plan, plan.runs[index], attempt, site, MEASURED)
    if ok:
        return made
    failed = Outcome(ok=False, reason="it broke", failed_in=Phase.MEASURE)
    return made.model_copy(update={"outcome": failed, "measurement": None})


def board_of(plan: Plan, made: tuple[RunRecord, ...] = ()) -> BlockSchedule:
    return BlockSchedule(plan, StudyState.from_records(made), made, SITES)


def test_each_idle_site_gets_one_block_and_each_block_one_site(plans: Any) -> None:
    schedule = board_of(plans(blocks=6, arms=("a", "b")))
    begun = dict(schedule.next_blocks(set(SITES), ()))
    assert set(begun) == set(SITES)
    assert all(schedule.site_of(block) == site for site, block in begun.items())
    assert not set(begun.values()) & {block for _, block in schedule.next_blocks(set(SITES), set(begun.values()))}


def test_a_block_is_open_until_all_its_runs_are_good_or_it_was_tried(plans: Any) -> None:
    plan = plans(blocks=2, arms=("a", "b"))
    schedule = board_of(plan)
    site = schedule.site_of(1)
    for index in (0, 1):
        schedule.note(site, (record(plan, index, site),))
    assert [block for _, block in schedule.next_blocks(set(SITES), ())] == [2]
    schedule.note(schedule.site_of(2), (record(plan, 2, schedule.site_of(2), ok=False),))
    assert schedule.can_start(())
    schedule.tried(2)
    assert not schedule.can_start(())


def test_what_is_decided_is_what_all_records_say_in_whatever_order_they_come(plans: Any) -> None:
    plan = plans(blocks=12, arms=("a", "b"), protocol=InterleaveSpec(blocks=12, target=0.5, min_blocks=8))
    records = [record(plan, index, SITES[run.block % 3]) for index, run in enumerate(plan.runs)]
    schedule = board_of(plan)
    for one in reversed(records):
        schedule.note(one.site or "", (one,))
        assert schedule.decided == decision(plan, schedule.done)
    assert schedule.decided.blocks == 12


def test_a_run_made_good_later_changes_what_is_decided_of_a_finished_block(plans: Any) -> None:
    plan = plans(blocks=3, arms=("a", "b"), protocol=InterleaveSpec(blocks=8, target=None))
    bad = next(index for index, run in enumerate(plan.runs) if run.arm == "b")
    begun = [index for index, run in enumerate(plan.runs) if run.block <= 2]
    first = tuple(record(plan, index, "north", ok=index != bad) for index in begun)
    schedule = board_of(plan, first)
    assert schedule.decided == decision(plan, schedule.done)
    assert schedule.decided.arms["b"].n == 1
    schedule.note("north", (record(plan, bad, "north", attempt=2),))
    assert schedule.decided == decision(plan, schedule.done)
    assert schedule.decided.arms["b"].n == 2


def test_a_record_that_comes_twice_is_known(plans: Any) -> None:
    plan = plans(blocks=1, arms=("a", "b"))
    schedule = board_of(plan)
    failed = record(plan, 0, "north", ok=False)
    assert not schedule.known(failed)
    schedule.note("north", (failed,))
    assert schedule.known(failed)
    assert not schedule.known(record(plan, 0, "north", attempt=2))


def test_blocks_that_were_begun_on_a_site_which_went_are_orphaned_once(plans: Any) -> None:
    plan = plans(blocks=3, arms=("a", "b"))
    schedule = board_of(plan)
    lost = schedule.site_of(1)
    schedule.note(lost, (record(plan, 0, lost),))
    assert schedule.orphaned() == ()
    schedule.remove_site(lost)
    (orphaned,) = schedule.orphaned()
    assert (orphaned.block, orphaned.site, [run.id for run in orphaned.runs]) == (1, lost, [plan.runs[1].id])
    assert schedule.orphaned() == ()
    rest = set(SITES) - {lost}
    assert {site for site, _ in schedule.next_blocks(rest, ())} <= rest
