"""The interval that the random order alone gives: exactly, by all draws of the order, and by simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from tests.unit.analyze import synthetic
from tests.unit.protocols.noise import DRIFT, drifting, skewed_arm, units_of

from tare.analyze.estimate import Verdict
from tare.analyze.estimator import paired
from tare.analyze.statistics.intervals import SIGN_FLIP, sign_flip_log_ratio
from tare.analyze.verdict import sign_flip_p_values, verdict
from tare.protocols.anytime import ALPHA
from tare.protocols.sign_flip import interval, log_wealth, mean, mirrored, p_value_beyond, stakes_of
from tare.protocols.sign_flip import p_value as flip_p_value
from tare.protocols.stopping import End, Finished, Rule, decide
from tare.study.protocol_spec import DuetSpec, InterleaveSpec

FLIP = InterleaveSpec(looks="any", anytime="sign-flip")
WILD = (0.1, -3.0, 0.02, 0.5, 9.0, -0.3, 0.04, -0.7, 1.1, 20.0, 0.06, -2.0)
"""Sizes such as no normal noise has."""


def every_draw(sizes: Sequence[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A row for each way in which the orders could have come out."""
    signs = np.asarray(list(itertools.product((-1.0, 1.0), repeat=len(sizes))))
    return np.asarray(signs * np.abs(sizes))


def test_the_wager_is_fair_at_every_step_whatever_the_sizes() -> None:
    wealth = np.exp(log_wealth(stakes_of(every_draw(WILD))))
    assert wealth.mean(axis=0) == pytest.approx(np.ones(len(WILD)))


def test_over_all_draws_the_truth_is_ever_rejected_in_one_of_twenty_at_most() -> None:
    """Not simulated: these are all 4096 orders that the plan could have had."""
    draws = every_draw(WILD)
    ever = np.zeros(len(draws), dtype=bool)
    for side in (draws, -draws):
        ever |= (log_wealth(stakes_of(side)) >= math.log(2 / ALPHA)).any(axis=1)
    assert 0 < ever.mean() <= ALPHA


def test_the_interval_is_all_means_whose_p_value_is_above_alpha() -> None:
    units = np.random.default_rng(1).normal(-0.03, 0.02, 30).tolist()
    ends = interval(units)
    assert ends is not None
    assert ends.low < -0.03 < ends.high
    for end, inwards in ((ends.low, 1), (ends.high, -1)):
        assert flip_p_value(units, end) == pytest.approx(ALPHA, rel=1e-6)
        assert flip_p_value(units, end + inwards * 1e-4) > ALPHA > flip_p_value(units, end - inwards * 1e-4)


def test_it_moves_and_scales_with_the_data_and_turns_with_the_arms() -> None:
    units = np.asarray(WILD * 2) / 100
    plain, moved, turned = (interval(each.tolist()) for each in (units, 3 * units + 0.5, -units))
    assert plain is not None
    assert moved == pytest.approx((3 * plain.low + 0.5, 3 * plain.high + 0.5), rel=1e-6)
    assert turned == pytest.approx((-plain.high, -plain.low), rel=1e-6)


def test_six_pairs_of_blocks_at_least_are_needed() -> None:
    """Five signs alike come by chance in one draw of 16 on either side."""
    values = [0.010, 0.012, 0.011, 0.013, 0.009, 0.0105, 0.0115, 0.0125]
    assert next(n for n in range(2, 9) if interval(values[:n]) is not None) in {6, 7}
    assert interval([0.01] * 12) is None


def test_blocks_without_their_mirror_are_left_out() -> None:
    assert mirrored({1: 0.1, 2: 0.3, 4: 9.0, 5: 0.5, 6: 0.7, 7: 9.0}) == pytest.approx([0.2, 0.6])


def test_a_duet_finds_mirrors_among_the_blocks_of_an_arm() -> None:
    """Of two arms beside the baseline, blocks 1 and 2 are one of each, 3 and 4 the same turned."""
    assert mirrored({1: 0.1, 4: 0.3, 5: 0.5, 8: 0.7}, blocks_each=2) == pytest.approx([0.2, 0.6])


def test_a_drifting_machine_and_its_mirrored_order_leave_it_valid() -> None:
    units = units_of(drifting(np.random.default_rng(3), 2000, 60))
    ever = np.zeros(len(units), dtype=bool)
    for side in (units, -units):
        ever |= (log_wealth(stakes_of(side)) >= math.log(2 / ALPHA)).any(axis=1)
    assert DRIFT > 0
    assert ever.mean() <= ALPHA


def test_a_tail_of_the_arm_alone_is_no_constant_effect_and_not_covered() -> None:
    """What the documentation warns of: the order gives symmetry where the effect is the same in every run."""
    units = units_of(skewed_arm(np.random.default_rng(4), 1000, 200))
    ever = np.zeros(len(units), dtype=bool)
    for side in (units, -units):
        ever |= (log_wealth(stakes_of(side)) >= math.log(2 / ALPHA)).any(axis=1)
    assert ever.mean() > ALPHA


def test_the_study_ends_by_the_same_interval_as_it_reports() -> None:
    ratios = np.exp(np.random.default_rng(5).normal(0, 0.01, 40)).tolist()
    finished = [Finished(n, {"base": 1.0, "a": each}) for n, each in enumerate(ratios, 1)]
    rule = Rule.of(FLIP)
    last = next(n for n in range(1, 41) if decide(rule, "base", finished[:n]).end is not None)
    decision = decide(rule, "base", finished[:last])
    study = synthetic.study(("bare", "bridge")).model_copy(update={"protocol": FLIP})
    estimate = paired(study, ratios[:last])
    assert decision.end is End.TARGET
    assert last % 2 == 0
    assert (estimate.point, estimate.low, estimate.high) == (
        decision.arms["a"].point,
        decision.arms["a"].low,
        decision.arms["a"].high,
    )
    assert (estimate.method, estimate.confidence, estimate.n) == (SIGN_FLIP, 0.95, last)


def test_few_blocks_have_a_point_and_say_why_there_is_no_interval() -> None:
    estimate = sign_flip_log_ratio({1: 1.0, 2: 1.1, 3: 0.9, 4: 1.05})
    assert (estimate.low, estimate.n) == (None, 4)
    assert "too few for an interval" in (estimate.why or "")


def test_verdicts_follow_the_interval() -> None:
    ratios = dict(enumerate(np.exp(np.random.default_rng(6).normal(0, 0.01, 40)).tolist(), 1))
    estimate = sign_flip_log_ratio(ratios)
    assert estimate.low is not None
    assert estimate.high is not None
    widest = max(estimate.high, 1 / (1 + estimate.low) - 1)
    within, beyond = (sign_flip_p_values(ratios, widest * factor) for factor in (1.2, 0.8))
    assert within is not None
    assert beyond is not None
    assert (within.outside or 1) < ALPHA < (beyond.outside or 0)
    assert within.zero > ALPHA


def test_a_duet_is_read_with_its_own_mirrors() -> None:
    spec = DuetSpec(name="duet", looks="any", anytime="sign-flip")
    rng = np.random.default_rng(7)
    blocks = [
        Finished(n, {"base": 1.0, "a": None, "b": None, "ab"[n % 2]: math.exp(rng.normal(0, 0.01))})
        for n in range(1, 49)
    ]
    decision = decide(Rule.of(spec, 2), "base", blocks)
    assert {arm.n for arm in decision.arms.values()} == {24}
    assert all(arm.low is not None for arm in decision.arms.values())


def with_an_outlier(place: int) -> list[float]:
    """Pairs that all lie near +3 % but one, which draws their mean to 0."""
    units: list[float] = (0.03 + np.random.default_rng(8).normal(0, 0.002, 30)).tolist()
    units[place] = -0.9
    return units


@pytest.mark.parametrize("place", [0, 15, 29])
def test_an_outlier_that_draws_the_mean_inside_the_margin_makes_nothing_equivalent(place: int) -> None:
    units = with_an_outlier(place)
    ratios = {n: math.exp(units[(n - 1) // 2]) for n in range(1, 61)}
    assert abs(sum(units) / len(units)) < 0.005
    for side in (ratios, {block: 1 / ratio for block, ratio in ratios.items()}):
        tested = sign_flip_p_values(side, 0.02)
        assert tested is not None
        assert tested.outside == 1.0
        assert verdict(tested) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("place", [0, 15, 29])
def test_an_interval_holds_its_own_point(place: int) -> None:
    ends = interval(with_an_outlier(place))
    assert ends is not None
    assert ends.low <= mean(with_an_outlier(place)) <= ends.high


def test_a_bound_is_tested_from_its_own_side() -> None:
    units = np.random.default_rng(9).normal(0.03, 0.01, 40).tolist()
    assert p_value_beyond(units, 0.0, -1) < 1e-4
    assert p_value_beyond(units, 0.0, 1) == 1.0
    assert p_value_beyond(units, 0.06, 1) < 1e-4
    assert p_value_beyond(units, 0.06, -1) == 1.0
    assert p_value_beyond(units, 0.06, 1) == pytest.approx(p_value_beyond([-each for each in units], -0.06, -1))


def test_over_all_draws_an_effect_at_a_bound_is_seldom_called_within() -> None:
    """All 256 orders of eight pairs with the effect just at the margin, at their last look."""
    sizes = (0.1, -3.0, 0.02, 0.5, -0.3, 0.04, -0.7, 1.1)
    within = [p_value_beyond((0.02 + 0.01 * draw).tolist(), 0.02, 1) < ALPHA for draw in every_draw(sizes)]
    assert sum(within) / len(within) <= ALPHA / 2


def test_signs_of_rounding_are_not_bet_on() -> None:
    rounding = [1e-17] * 20
    assert interval([*rounding, 0.01, -0.012, 0.009]) is not None
    assert p_value_beyond([*rounding, 0.01, -0.012, 0.009], 0.0, -1) > ALPHA


def test_pairs_whose_blocks_cancel_but_for_rounding_have_no_interval() -> None:
    ratios = {n: math.exp((0.01 + 0.001 * ((n - 1) // 2)) * (1 if n % 2 else -1)) for n in range(1, 41)}
    ratios[3] = math.nextafter(ratios[3], 2.0)
    assert len(set(mirrored({block: math.log(ratio) for block, ratio in ratios.items()}))) > 1
    estimate = sign_flip_log_ratio(ratios)
    assert (estimate.low, estimate.high) == (None, None)
    assert "the same ratio in every mirrored pair" in (estimate.why or "")
    assert sign_flip_p_values(ratios, 0.02) is None
    finished = [Finished(n, {"base": 1.0, "a": ratio}) for n, ratio in ratios.items()]
    assert decide(Rule.of(FLIP), "base", finished).arms["a"].low is None
