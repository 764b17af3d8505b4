"""Which block goes where, and how many may be begun."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tare.protocols.stopping import Decision, End, Progress
from tare.run.fleet.assignment import last_block, site_of_block
from tare.study.protocol_spec import FixedSpec, InterleaveSpec

SITES = ["a", "b", "c", "d"]


def decided(blocks: int, more: int | None = None, end: End | None = None, seconds: float = 0.0) -> Decision:
    return Decision(blocks, seconds, end, {"other": Progress(blocks, more_blocks=more)})


def test_every_site_is_met_once_before_any_is_met_again(plans: Any) -> None:
    plan = plans(blocks=12)
    dealt = [site_of_block(plan, SITES, block) for block in range(1, 13)]
    assert all(sorted(dealt[start : start + 4]) == SITES for start in (0, 4, 8))
    assert len({tuple(dealt[start : start + 4]) for start in (0, 4, 8)}) > 1


def test_the_deal_is_the_seed_s_alone(plans: Any) -> None:
    blocks = range(1, 41)
    one, other = plans(seed=1), plans(seed=2)
    assert [site_of_block(one, SITES, b) for b in blocks] == [site_of_block(one, SITES[::-1], b) for b in blocks]
    assert [site_of_block(one, SITES, b) for b in blocks] != [site_of_block(other, SITES, b) for b in blocks]


def test_a_fixed_number_of_blocks_may_all_be_begun(plans: Any) -> None:
    plan = plans(protocol=FixedSpec(name="fixed", blocks=7, control=False))
    assert last_block(plan, decided(0), None) == 7


def sequential(**given: Any) -> InterleaveSpec:
    return InterleaveSpec(name="interleave", **{"min_blocks": 8, "look_every": 4, "blocks": 40, **given})


@pytest.mark.parametrize(
    ("decision", "last"),
    [
        (decided(0), 8),
        (decided(5), 8),
        (decided(8, more=2), 12),
        (decided(8, more=20), 28),
        (decided(36, more=90), 40),
        (decided(12, end=End.TARGET), 12),
    ],
)
def test_blocks_are_begun_up_to_the_next_look_or_as_the_spread_lets_expect(
    plans: Any, decision: Decision, last: int
) -> None:
    plan = plans(arms=("plain", "other"), protocol=sequential())
    assert last_block(plan, decision, None) == last


def test_no_more_blocks_are_begun_than_fit_under_a_cap_on_machine_time(plans: Any) -> None:
    plan = plans(arms=("plain", "other"), protocol=sequential(max_minutes=10))
    assert last_block(plan, decided(4, seconds=400), None) == 6


def test_no_block_begins_after_a_pilot_that_is_not_over(plans: Any) -> None:
    plan = plans(arms=("plain", "other"), protocol=sequential(measure="auto", measure_most_s=10.0))
    assert last_block(plan, decided(1), None) == 4


def test_a_deal_is_even(plans: Any) -> None:
    plan = plans()
    counted = Counter(site_of_block(plan, SITES, block) for block in range(1, 401))
    assert set(counted.values()) == {100}
