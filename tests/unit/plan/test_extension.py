"""A higher cap extends a plan; every other difference is named."""

from __future__ import annotations

import pytest
from tests.unit.plan.test_expand import a_study

from tare.plan.expand import expand
from tare.plan.extension import changes_between, differences, extends
from tare.plan.model import Plan
from tare.study.protocol_spec import FixedSpec, InterleaveSpec


def plan(**protocol: object) -> Plan:
    return expand(a_study().model_copy(update={"protocol": InterleaveSpec.model_validate(protocol)}), 5)


@pytest.mark.parametrize(
    ("was", "now", "right"),
    [
        ({"blocks": 10}, {"blocks": 10}, True),
        ({"blocks": 10}, {"blocks": 150}, True),
        ({"blocks": 10}, {"blocks": 9}, False),
        ({"max_minutes": 5}, {"max_minutes": 9}, True),
        ({"max_minutes": 5}, {}, True),
        ({}, {"max_minutes": 5}, False),
        ({"blocks": 10, "max_minutes": 5}, {"blocks": 20, "max_minutes": 9}, True),
        ({"blocks": 10, "max_minutes": 5}, {"blocks": 20, "max_minutes": 4}, False),
        ({"blocks": 10}, {"blocks": 20, "target": 0.01}, False),
    ],
)
def test_only_a_raised_cap_extends(was: dict[str, object], now: dict[str, object], right: bool) -> None:
    assert extends(plan(**was), plan(**now)) is right


def test_runs_that_are_kept_together_cannot_be_extended() -> None:
    def kept(blocks: int) -> Plan:
        spec = FixedSpec(name="fixed", blocks=blocks, sequence="together")
        return expand(a_study().model_copy(update={"protocol": spec}), 5)

    assert not extends(kept(3), kept(4))
    assert changes_between(kept(3), kept(4)).endswith(
        "the existing runs would not be the first ones of the new plan"
    )


def test_spread_runs_can() -> None:
    def spread(blocks: int) -> Plan:
        return expand(a_study().model_copy(update={"protocol": FixedSpec(name="fixed", blocks=blocks)}), 5)

    assert extends(spread(3), spread(9))


def test_differences_are_named_by_key_and_arm_the_first_ones_only() -> None:
    one, other = expand(a_study(seed=5)), expand(a_study(arms=3, seed=6))
    assert {each.key for each in differences(one, other)} > {"protocol.seed", "seed"}
    assert (
        changes_between(one, expand(a_study(seed=7)))
        == "protocol.seed is 5 there and 7 here, seed is 5 there and 7 here"
    )
    named = one.model_copy(update={"study": one.study.model_copy(update={"name": "other", "scale": "demo"})})
    assert "name is" in changes_between(expand(a_study(seed=7)), named)
    assert "1 more keys differ" in changes_between(expand(a_study(seed=7)), named)
    assert differences(one, one) == ()


def test_arms_that_only_one_plan_has_are_named_alone() -> None:
    few, many = expand(a_study(arms=2, seed=5)), expand(a_study(arms=6, seed=5))
    gone = [arm.name for arm in many.study.arms if arm.name not in {each.name for each in few.study.arms}]
    assert changes_between(few, many) == f"arms {', '.join(gone[:3])} and {len(gone) - 3} more here, not there"
    assert changes_between(many, few).endswith("there, not here")
