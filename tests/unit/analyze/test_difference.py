"""Welch's interval between two independent studies, against scipy's and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tare.analyze.comparison import difference
from tare.protocols.stopping import reach

A = [-0.1, 0.0, 0.1]
B = [0.1, 0.2, 0.3, 0.4]


def test_point_interval_and_p_are_those_of_welch() -> None:
    result = difference(np.exp(A).tolist(), np.exp(B).tolist())
    welch = stats.ttest_ind(B, A, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert result.estimate.point == pytest.approx(math.exp(0.25) - 1)
    assert (result.estimate.low, result.estimate.high) == pytest.approx((math.exp(low) - 1, math.exp(high) - 1))
    assert result.p_zero == pytest.approx(welch.pvalue)
    assert result.estimate.n == 3


def test_standard_error_and_freedom_by_hand() -> None:
    # s²/n: 0.01 / 3 and 0.05 / 3 / 4, so SE² = 0.0075; f = 0.0075² / (0.00333² / 2 + 0.00417² / 3) = 4.959
    result = difference(np.exp(A).tolist(), np.exp(B).tolist())
    freedom = 0.0075**2 / ((0.01 / 3) ** 2 / 2 + (0.05 / 12) ** 2 / 3)
    assert freedom == pytest.approx(4.959, abs=5e-4)
    assert result.estimate.high is not None
    reached = math.log1p(result.estimate.high) - 0.25
    assert reached == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(0.0075))


def test_swapping_the_studies_inverts_the_difference() -> None:
    there, back = (difference(np.exp(one).tolist(), np.exp(other).tolist()) for one, other in ((A, B), (B, A)))
    assert there.estimate.low is not None
    assert back.estimate.high is not None
    assert (1 + there.estimate.low) * (1 + back.estimate.high) == pytest.approx(1)
    assert there.p_zero == pytest.approx(back.p_zero)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ([], [1.0, 1.1], "no block"),
        ([1.0, 1.1], [1.0, 1.1, 1.2], "needs 3 blocks"),
        ([1.0, 1.0, 1.0], [1.0, 1.1, 1.2], "the spread is unknown"),
    ],
)
def test_without_enough_blocks_or_spread_there_is_no_interval(a: list[float], b: list[float], why: str) -> None:
    result = difference(a, b)
    assert (result.estimate.low, result.p_zero) == (None, None)
    assert why in str(result.estimate.why)


def stopped(logs: NDArray[np.float64], target: float, alpha: float) -> list[NDArray[np.float64]]:
    """Each row up to the first look, at 8, 12, … blocks, at which its interval is within the target."""
    looks = range(8, logs.shape[1] + 1, 4)
    ends = np.full(len(logs), logs.shape[1])
    for look in reversed(looks):
        ends[reach(logs[:, :look], alpha) <= target] = look
    return [row[:end] for row, end in zip(logs, ends, strict=True)]


@pytest.mark.parametrize(("effect", "noise_b"), [(0.0, 0.02), (0.05, 0.06)])
def test_the_interval_covers_where_both_studies_stopped_by_looks(effect: float, noise_b: float) -> None:
    rng, studies = np.random.default_rng(20261121), 1500
    a = stopped(rng.normal(-0.1, 0.02, (studies, 40)), 0.02, 0.035)
    b = stopped(rng.normal(-0.1 + effect, noise_b, (studies, 40)), 0.02, 0.035)
    covered = 0
    for one, other in zip(a, b, strict=True):
        estimate = difference(np.exp(one).tolist(), np.exp(other).tolist(), 0.035).estimate
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= math.expm1(effect) <= estimate.high
    assert covered / studies >= 0.94
