"""The stopping rule: what it does, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import pstdev, stdev

import pytest

from tare.protocols import stopping
from tare.protocols.stopping import Decision, End, Finished, Progress, Rule, blocks_needed, decide, progress
from tare.study.protocol_spec import BucketsSpec, FixedSpec, InterleaveSpec

NARROW = [1.0, 1.001] * 6
WIDE = [1.0, 1.5] * 6


def after(
    blocks: int, rule: Rule | None = None, *, seconds: float = 0.0, **arms: Sequence[float | None]
) -> Decision:
    """The decision after so many blocks of a baseline of 100/s; each arm by its ratios to it."""
    finished = [
        Finished(n + 1, {"base": 100.0} | {arm: r[n] and 100 * (r[n] or 0) for arm, r in arms.items()}, seconds)
        for n in range(blocks)
    ]
    return decide(rule or Rule(), "base", finished)


def test_looks_come_at_eight_and_every_four_after_that_and_at_the_cap() -> None:
    rule = Rule(blocks=22)
    assert [n for n in range(1, 23) if rule.looks_at(n)] == [8, 12, 16, 20, 22]


def test_a_cap_below_the_least_number_of_blocks_is_no_look() -> None:
    assert not any(Rule(blocks=5).looks_at(n) for n in range(1, 6))
    assert after(5, Rule(blocks=5), a=NARROW).end is End.BLOCKS


def test_every_arm_must_be_narrow_enough() -> None:
    assert after(8, a=NARROW).end is End.TARGET
    decision = after(8, a=NARROW, b=WIDE)
    assert decision.end is None
    assert decision.arms["a"].more_blocks == 0
    assert decision.more_blocks == decision.arms["b"].more_blocks
    assert (decision.more_blocks or 0) > 50


def test_what_is_needed_yet_reaches_to_the_next_look_however_narrow() -> None:
    """After 9 blocks the next look is at 12; of an arm that could have done with 8, three more are to come."""
    assert after(8, a=NARROW).arms["a"].more_blocks == 0
    assert after(9, a=NARROW).arms["a"].more_blocks == 3
    assert after(9, a=NARROW).more_blocks == 3
    assert after(12, a=NARROW).arms["a"].more_blocks == 0
    assert after(10, Rule(blocks=11), a=NARROW).arms["a"].more_blocks == 1


def test_between_looks_nothing_stops_however_narrow() -> None:
    assert after(9, a=NARROW).end is None
    assert after(4, a=NARROW).end is None


def test_a_significant_difference_stops_nothing() -> None:
    decision = after(8, a=[0.5, 0.55, 0.6, 0.45, 0.5, 0.55, 0.6, 0.45])
    assert decision.end is None
    assert (decision.arms["a"].high or 0) < 0


def test_an_arm_that_lacks_blocks_is_not_enough() -> None:
    assert after(8, a=[None, *NARROW]).end is None
    decision = after(12, a=[None, *NARROW])
    assert (decision.arms["a"].n, decision.end) == (11, End.TARGET)


def test_an_arm_without_any_pair_keeps_the_rest_going_to_the_cap() -> None:
    decision = after(8, a=NARROW, b=[None] * 8)
    assert (decision.end, decision.arms["b"].half_width, decision.more_blocks) == (None, None, None)


def test_two_blocks_have_a_point_and_no_interval_as_in_every_report() -> None:
    result = after(2, a=[0.9, 1.0]).arms["a"]
    assert (result.n, result.half_width, result.more_blocks) == (2, None, None)
    assert result.point == pytest.approx(0.9**0.5 - 1)
    assert after(3, a=[0.9, 1.0, 0.95]).arms["a"].half_width is not None


def test_equal_ratios_have_no_known_spread_and_so_no_width() -> None:
    decision = after(8, a=[1.0] * 8)
    assert (decision.end, decision.arms["a"].half_width) == (None, None)


def test_no_block_is_begun_that_would_end_after_the_time() -> None:
    rule = Rule(seconds=100.0)
    assert after(4, rule, seconds=20.0, a=WIDE).end is None
    assert after(5, rule, seconds=20.0, a=WIDE).end is End.TIME
    assert after(4, rule, seconds=20.1, a=WIDE).end is End.TIME


def test_nothing_finished_decides_nothing() -> None:
    assert decide(Rule(seconds=0.1), "base", []) == Decision(0, 0.0, None, {})


@pytest.mark.parametrize("rule", [Rule(target=None, blocks=9), Rule(blocks=20)])
def test_intervals_are_worked_out_where_they_decide_or_somebody_asks(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(of: Rule, log_ratios: Sequence[float]) -> Progress:
        asked.append(len(log_ratios))
        return progress(of, log_ratios)

    monkeypatch.setattr(stopping, "progress", counted)
    decision = after(9, rule, a=NARROW, b=WIDE)
    assert (decision.end, asked) == (End.BLOCKS if rule.target is None else None, [])
    assert decision.arms["b"] == progress(rule, [math.log(each) for each in WIDE[:9]])
    assert list(decision.arms) == ["a", "b"]
    assert asked == [9, 9]
    assert after(8, rule, a=NARROW, b=WIDE).end is None
    assert asked[2:] == ([] if rule.target is None else [8, 8])


def test_the_decision_is_of_the_records_alone() -> None:
    assert after(12, a=NARROW, b=WIDE) == after(12, a=NARROW, b=WIDE)


def test_blocks_needed_by_hand() -> None:
    # reach = t * 0.03 / sqrt(n). 12 blocks: t(11; 0.9825) = 2.4037, 0.02082. 16 blocks: t(15) = 2.3178, 0.01738.
    assert blocks_needed(Rule(), 0.0, 0.03) == 16
    assert blocks_needed(Rule(), -0.5, 0.03) == 8
    assert blocks_needed(Rule(blocks=40), 0.0, 3.0) == 40
    assert blocks_needed(Rule(target=None), 0.0, 0.03) is None


def test_a_protocol_without_looks_pays_nothing_for_them() -> None:
    assert Rule.of(InterleaveSpec(blocks=9, max_minutes=2)) == Rule(blocks=9, seconds=120.0)
    for spec in (
        InterleaveSpec(target=None, blocks=5),
        FixedSpec(name="fixed"),
        BucketsSpec(name="buckets", blocks=5),
    ):
        assert Rule.of(spec) == Rule(target=None, alpha=0.05, blocks=5)


@pytest.mark.parametrize("changed", [{"alpha": 0.05}, {"min_blocks": 7}, {"look_every": 3}, {"target": 0.0}])
def test_what_would_cost_the_shown_coverage_is_refused(changed: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="Input should be"):
        InterleaveSpec.model_validate(changed)


def test_the_blocks_still_needed_follow_from_the_sample_standard_deviation() -> None:
    logs = [0.05 * (-1) ** n for n in range(8)]
    rule = Rule(target=0.02, blocks=1000)
    needed = blocks_needed(rule, 0.0, stdev(logs), made=8)
    assert needed is not None
    assert needed != blocks_needed(rule, 0.0, pstdev(logs), made=8)
    assert progress(rule, logs).more_blocks == needed - 8
