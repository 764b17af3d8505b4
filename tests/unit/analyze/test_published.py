"""Estimators of published studies: known answers, and the faults they are kept for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW  # type: ignore[import-untyped]  # has no stubs

from tare.analyze.estimate import Estimate
from tare.analyze.published import (
    Repetitions,
    mean_square_error,
    min_max_mean,
    overhead_fraction,
    pooled_windows,
    relative_change,
    welch,
)

ARM = [90.0, 94.0, 92.0, 96.0]
BASELINE = [100.0, 104.0, 98.0, 102.0, 96.0]


def test_welch_agrees_with_statsmodels() -> None:
    effect = welch(ARM, BASELINE)
    low, high = CompareMeans(DescrStatsW(ARM), DescrStatsW(BASELINE)).tconfint_diff(usevar="unequal")
    assert effect.point == pytest.approx(93 / 100 - 1)
    assert (effect.low, effect.high) == pytest.approx((low / 100, high / 100))
    assert effect.n == 4


@pytest.mark.parametrize(
    ("arm", "baseline", "why"),
    [([], [1.0], "no run"), ([1.0], [2.0], "has no spread"), ([1.0] * 3, [2.0] * 3, "any spread")],
)
def test_welch_without_spread_has_no_interval(arm: list[float], baseline: list[float], why: str) -> None:
    effect = welch(arm, baseline)
    assert effect.low is effect.high is None
    assert why in str(effect.why)


def test_pooled_windows_by_hand() -> None:
    # Means 11 and 10, variances 2 and 2, n = 2 each: 1 ± 1.96 * sqrt(2), over 10.
    effect = pooled_windows([10.0, 12.0], [9.0, 11.0])
    assert effect.point == pytest.approx(0.1)
    assert effect.low == pytest.approx((1 - 1.96 * math.sqrt(2)) / 10)
    assert effect.high == pytest.approx((1 + 1.96 * math.sqrt(2)) / 10)


def test_pooled_windows_are_far_too_sure_when_starts_differ() -> None:
    """What the facts say of it: over half of A/A comparisons come out significant."""
    rng, wrong = np.random.default_rng(11), 0
    for _ in range(300):
        one, other = (rng.normal(0, 0.015, (5, 1)) + rng.normal(0, 0.03, (5, 60)) + 1 for _ in range(2))
        effect = pooled_windows(one.ravel().tolist(), other.ravel().tolist())
        wrong += effect.low is not None and effect.high is not None and not effect.low <= 0 <= effect.high
    assert wrong / 300 > 0.4


def test_mean_square_error_by_hand() -> None:
    assert mean_square_error([1.0, 3.0]) == pytest.approx(1.0)
    assert mean_square_error([]) is None


def test_overhead_fraction_hides_the_sign() -> None:
    assert overhead_fraction(110.0, 100.0) == pytest.approx(0.1)
    assert overhead_fraction(90.0, 100.0) == pytest.approx(0.1)
    assert overhead_fraction(1.0, 0.0) is None


def test_relative_change_of_averages() -> None:
    assert relative_change([1.0, 2.0], [3.0, 3.0]).point == pytest.approx(-0.5)
    assert relative_change([], []).point is None


def test_min_max_mean() -> None:
    effect = min_max_mean([1.0, 2.0, 6.0])
    assert effect is not None
    assert (effect.n, effect.smallest, effect.largest, effect.mean) == (3, 1.0, 6.0, 3.0)
    assert effect.stddev == pytest.approx(math.sqrt(7))
    assert min_max_mean([4.0]) == Repetitions(1, 4.0, 4.0, 4.0, None)
    assert min_max_mean([]) is None


@pytest.mark.parametrize("judge", [welch, pooled_windows])
def test_nothing_is_relative_to_a_baseline_of_zero(judge: Callable[..., Estimate]) -> None:
    made = judge([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert (made.point, made.low, made.high, made.n) == (None, None, None, 3)
    assert made.why == "the baseline is zero"


def test_welch_takes_runs_that_are_nearly_alike_without_a_warning() -> None:
    alike = [1000.0, 1000.0 + 2e-12]
    effect = welch(alike, alike)
    assert effect.low is not None
    assert effect.low <= 0 <= (effect.high or 0)
