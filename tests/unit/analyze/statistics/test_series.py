"""MSER-5, lag-1 correlation and the number of windows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.tsa.stattools import acf  # type: ignore[import-untyped]  # has no stubs

from tare.analyze.statistics.series import bound, lag1, mser5
from tare.protocols.pilot import Components, components, windows_per_round


def test_mser5_by_hand() -> None:
    # 12 batches: 9, 5, then 1 and 2 in turn. Leaving out two batches: variance 0.25 / 10; one: far more.
    batches = [9.0, 5.0, *[1.0, 2.0] * 5]
    warm_up = mser5([value for value in batches for _ in range(5)])
    assert warm_up is not None
    assert (warm_up.drop, warm_up.settled) == (10, True)


def test_mser5_weighs_what_is_lost_against_what_is_left_as_published() -> None:
    """Of 10 batch means, ±1 but for the first, 1.7 above their mean: 11.49 / 100 at 0, 8.89 / 81 at 1, 8 / 64 at 2.

    Over the cube of what is left, which would keep all, it would be 11.49 / 1000 against 8.89 / 729.
    """
    rest = [1.0, -1.0] * 4 + [1.0]
    warm_up = mser5([each for mean in (1 / 9 + 1.7, *rest) for each in [mean] * 5])
    assert warm_up is not None
    assert warm_up.drop == 5


def test_a_settled_series_needs_no_warm_up_to_be_dropped() -> None:
    drops = [mser5(np.random.default_rng(seed).normal(100, 1, 300).tolist()) for seed in range(40)]
    assert np.median([one.drop for one in drops if one is not None]) <= 30


def test_an_exponential_warm_up_is_found() -> None:
    times = np.arange(300)
    series = 100 * (1 - np.exp(-times / 15)) + np.random.default_rng(1).normal(0, 1, 300)
    warm_up = mser5(series.tolist())
    assert warm_up is not None
    assert warm_up.settled
    assert 40 <= warm_up.drop <= 100


def test_a_series_that_never_settles_is_told() -> None:
    warm_up = mser5([float(n) for n in range(200)])
    assert warm_up is not None
    assert not warm_up.settled


def test_a_short_series_has_no_answer() -> None:
    assert mser5([1.0] * 49) is None


@pytest.mark.parametrize("seed", range(3))
def test_lag1_agrees_with_statsmodels(seed: int) -> None:
    series = np.random.default_rng(seed).normal(size=40).cumsum()
    assert lag1(series.tolist()) == pytest.approx(acf(series, nlags=1)[1])


def test_lag1_by_hand() -> None:
    # 1, -1 in turn: mean 0, seven products of -1 over eight squares of 1.
    assert lag1([1.0, -1.0] * 4) == pytest.approx(-7 / 8)


def test_lag1_needs_values_that_vary() -> None:
    assert lag1([1.0] * 20) is None
    assert lag1([1.0, 2.0] * 3) is None


def test_independent_values_exceed_the_bound_once_in_twenty() -> None:
    rng = np.random.default_rng(5)
    values = [lag1(row) for row in rng.normal(size=(2000, 40)).tolist()]
    assert sum(abs(one) > bound(40) for one in values if one is not None) / 2000 == pytest.approx(0.05, abs=0.02)


def test_components_by_hand() -> None:
    # Within each round ±1: variance 2. Round means 10, 14: variance 8, of which 2 / 2 is the windows' own.
    variances = components([[9.0, 11.0], [13.0, 15.0]])
    assert variances == Components(within=2.0, between=7.0)


def test_components_of_a_known_mixture() -> None:
    rng = np.random.default_rng(9)
    table = rng.normal(0, 1.5, (400, 1)) + rng.normal(0, 3.0, (400, 10))
    variances = components(table.tolist())
    assert variances.between == pytest.approx(1.5**2, rel=0.2)
    assert variances.within == pytest.approx(3.0**2, rel=0.1)


def test_between_is_never_negative() -> None:
    assert components([[1.0, 3.0], [3.0, 1.0]]).between == 0


@pytest.mark.parametrize("pilot", [[], [[1.0, 2.0]], [[1.0], [2.0]]])
def test_a_pilot_that_is_too_small_is_refused(pilot: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="two rounds of two windows"):
        components(pilot)


@pytest.mark.parametrize(
    ("pilot", "expected"),
    [
        (Components(within=9.0, between=2.25), round(math.sqrt(8 / 1 * 4))),
        (Components(within=1.0, between=0.0), 30),
        (Components(within=0.01, between=100.0), 1),
        (Components(within=1000.0, between=0.1), 30),
    ],
)
def test_windows_per_round(pilot: Components, expected: int) -> None:
    assert windows_per_round(pilot, restart_s=8.0, window_s=1.0, most=30) == expected
