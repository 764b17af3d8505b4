"""The stopping rule: what it does, and in simulation what it promises."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tare.analyze.stopping import Rule, decide, progress, rounds_needed

Noise = Callable[[np.random.Generator, int], np.ndarray]
"""Noise of the log ratio of `n` rounds."""

RESTART, WITHIN, DRIFT = 0.015, 0.012, 0.03
"""Standard deviations of the log throughput: between starts, of a round's windows, and of what all arms share."""


def normal(rng: np.random.Generator, rounds: int) -> np.ndarray:
    return rng.normal(0, math.hypot(RESTART, WITHIN), (rounds, 2)) @ [1.0, -1.0]


def heavy_tailed(rng: np.random.Generator, rounds: int) -> np.ndarray:
    """t with 3 degrees of freedom, scaled to the same variance."""
    return (rng.standard_t(3, (rounds, 2)) * math.hypot(RESTART, WITHIN) / math.sqrt(3)) @ [1.0, -1.0]


def autocorrelated(rng: np.random.Generator, rounds: int) -> np.ndarray:
    """A machine that drifts from run to run (AR(1), 0.9), the two arms of a round in random order."""
    shocks = rng.normal(0, DRIFT * math.sqrt(1 - 0.9**2), 2 * rounds)
    drift = np.empty(2 * rounds)
    drift[0] = rng.normal(0, DRIFT)
    for n in range(1, 2 * rounds):
        drift[n] = 0.9 * drift[n - 1] + shocks[n]
    runs = drift.reshape(rounds, 2) + rng.normal(0, math.hypot(RESTART, WITHIN), (rounds, 2))
    first = rng.integers(0, 2, rounds)
    return np.where(first == 0, runs[:, 0] - runs[:, 1], runs[:, 1] - runs[:, 0])


def study(rule: Rule, effect: float, noise: Noise, rng: np.random.Generator) -> tuple[float, float]:
    """Run one arm until the rule says stop; the interval."""
    ratios = list((1 + effect) * np.exp(noise(rng, rule.most_rounds)))
    for rounds in range(1, rule.most_rounds + 1):
        if not rule.looks_at(rounds):
            continue
        decision = decide(rule, rounds, {"arm": ratios[:rounds]})
        if decision.stop:
            estimate = decision.arms["arm"].estimate
            assert estimate.low is not None
            assert estimate.high is not None
            return estimate.low, estimate.high
    raise AssertionError("the cap stops every study")


@pytest.mark.parametrize("noise", [normal, heavy_tailed, autocorrelated])
@pytest.mark.parametrize("effect", [0.0, -0.01, -0.02, -0.05, -0.10])
def test_the_default_rule_covers_the_truth_and_is_seldom_wrong(effect: float, noise: Noise) -> None:
    rng = np.random.default_rng([20160205, round(-1000 * effect)])
    intervals = [study(Rule(), effect, noise, rng) for _ in range(2000)]
    missed = sum(not low <= effect <= high for low, high in intervals) / len(intervals)
    assert 1 - missed >= 0.93
    if effect == 0:
        assert missed <= 0.06


def test_stopping_when_significant_would_be_wrong_far_more_often() -> None:
    """What the rule is there to avoid, so that the simulation above is known to be able to fail."""
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(300):
        ratios = np.exp(normal(rng, 60))
        looks = (progress(Rule(alpha=0.05), ratios[:n].tolist()).estimate for n in range(4, 61, 4))
        wrong += any(one.low is not None and one.high is not None and not one.low <= 0 <= one.high for one in looks)
    assert wrong / 300 > 0.10


def test_looks_come_at_eight_and_every_four_after_that_and_at_the_cap() -> None:
    rule = Rule(most_rounds=22)
    assert [n for n in range(1, 23) if rule.looks_at(n)] == [8, 12, 16, 20, 22]


def test_every_arm_must_be_narrow_enough() -> None:
    narrow = [1.0, 1.001] * 4
    wide = [1.0, 1.5] * 4
    assert decide(Rule(), 8, {"a": narrow}).stop
    decision = decide(Rule(), 8, {"a": narrow, "b": wide})
    assert not decision.stop
    assert decision.arms["a"].rounds_left == 0
    assert (decision.arms["b"].rounds_left or 0) > 50


def test_between_looks_nothing_stops_however_narrow() -> None:
    assert not decide(Rule(), 9, {"a": [1.0, 1.001, 1.0] * 3}).stop
    assert not decide(Rule(), 4, {"a": [1.0, 1.001] * 2}).stop


def test_a_significant_difference_stops_nothing() -> None:
    ratios = [0.5, 0.55, 0.6, 0.45, 0.5, 0.55, 0.6, 0.45]
    decision = decide(Rule(), 8, {"a": ratios})
    assert not decision.stop
    assert decision.arms["a"].estimate.high is not None
    assert decision.arms["a"].estimate.high < 0


def test_the_cap_ends_it_and_says_so() -> None:
    decision = decide(Rule(most_rounds=8), 8, {"a": [1.0, 1.5] * 4})
    assert (decision.stop, decision.reached) == (True, False)
    assert "cap of 8 rounds" in decision.why


def test_no_arm_with_data_is_never_enough() -> None:
    assert not decide(Rule(), 8, {}).stop
    assert not decide(Rule(), 8, {"a": []}).stop


def test_rounds_needed_by_hand() -> None:
    # reach = t * 0.03 / sqrt(n). 12 rounds: t(11; 0.9825) = 2.4037, 0.02082. 16 rounds: t(15) = 2.3178, 0.01738.
    assert rounds_needed(Rule(), 0.0, 0.03) == 16
    assert rounds_needed(Rule(), -0.5, 0.03) == 8
    assert rounds_needed(Rule(most_rounds=40), 0.0, 3.0) == 40
