"""What may be begun, where, and what a record changes, without any site or process."""

from __future__ import annotations

from typing import Any

from bench.fleet.made_up import made_up
from tare.plan.model import Plan
from tare.run.fleet.board import Board
from tare.run.record import Outcome, Phase, PhaseTime, RunRecord
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


def board_of(plan: Plan, made: tuple[RunRecord, ...] = ()) -> Board:
    return Board(plan, StudyState.from_records(made), made, SITES)


def test_each_idle_site_gets_one_block_and_each_block_one_site(plans: Any) -> None:
    board = board_of(plans(blocks=6, arms=("a", "b")))
    begun = dict(board.next_blocks(set(SITES), ()))
    assert set(begun) == set(SITES)
    assert all(board.site_of(block) == site for site, block in begun.items())
    assert not set(begun.values()) & {block for _, block in board.next_blocks(set(SITES), set(begun.values()))}


def test_a_block_is_open_until_all_its_runs_are_good_or_it_was_tried(plans: Any) -> None:
    plan = plans(blocks=2, arms=("a", "b"))
    board = board_of(plan)
    site = board.site_of(1)
    for index in (0, 1):
        board.note(site, (record(plan, index, site),))
    assert [block for _, block in board.next_blocks(set(SITES), ())] == [2]
    board.note(board.site_of(2), (record(plan, 2, board.site_of(2), ok=False),))
    assert board.can_start(())
    board.tried(2)
    assert not board.can_start(())


def test_what_is_decided_is_what_all_records_say_in_whatever_order_they_come(plans: Any) -> None:
    plan = plans(blocks=12, arms=("a", "b"), protocol=InterleaveSpec(blocks=12, target=0.5, min_blocks=8))
    records = [record(plan, index, SITES[run.block % 3]) for index, run in enumerate(plan.runs)]
    board = board_of(plan)
    for one in reversed(records):
        board.note(one.site or "", (one,))
        assert board.decided == decision(plan, board.done)
    assert board.decided.blocks == 12


def test_a_run_made_good_later_changes_what_is_decided_of_a_finished_block(plans: Any) -> None:
    plan = plans(blocks=3, arms=("a", "b"), protocol=InterleaveSpec(blocks=8, target=None))
    bad = next(index for index, run in enumerate(plan.runs) if run.arm == "b")
    begun = [index for index, run in enumerate(plan.runs) if run.block <= 2]
    first = tuple(record(plan, index, "north", ok=index != bad) for index in begun)
    board = board_of(plan, first)
    assert board.decided == decision(plan, board.done)
    assert board.decided.arms["b"].n == 1
    board.note("north", (record(plan, bad, "north", attempt=2),))
    assert board.decided == decision(plan, board.done)
    assert board.decided.arms["b"].n == 2


def test_a_record_that_comes_twice_is_known(plans: Any) -> None:
    plan = plans(blocks=1, arms=("a", "b"))
    board = board_of(plan)
    failed = record(plan, 0, "north", ok=False)
    assert not board.known(failed)
    board.note("north", (failed,))
    assert board.known(failed)
    assert not board.known(record(plan, 0, "north", attempt=2))


def test_blocks_that_were_begun_on_a_site_which_went_are_stranded_once(plans: Any) -> None:
    plan = plans(blocks=3, arms=("a", "b"))
    board = board_of(plan)
    lost = board.site_of(1)
    board.note(lost, (record(plan, 0, lost),))
    assert board.stranded() == ()
    board.remove_site(lost)
    (stranded,) = board.stranded()
    assert (stranded.block, stranded.site, [run.id for run in stranded.runs]) == (1, lost, [plan.runs[1].id])
    assert board.stranded() == ()
    rest = set(SITES) - {lost}
    assert {site for site, _ in board.next_blocks(rest, ())} <= rest
