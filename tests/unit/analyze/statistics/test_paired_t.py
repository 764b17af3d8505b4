"""The paired log-ratio t: known answers, invariances, coverage."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW  # type: ignore[import-untyped]  # has no stubs

from tare.analyze.statistics.intervals import paired_log_ratio_t

RATIOS = st.lists(st.floats(0.01, 100.0), min_size=3, max_size=12).filter(lambda each: np.std(np.log(each)) > 1e-6)


def test_known_answer_by_hand() -> None:
    # logs -0.1, 0.0, 0.1: mean 0, s = 0.1, t(2, 0.975) = 4.302653, reach = 4.302653 * 0.1 / sqrt(3) = 0.2484138.
    estimate = paired_log_ratio_t([math.exp(-0.1), 1.0, math.exp(0.1)])
    assert estimate.point == pytest.approx(0.0, abs=1e-12)
    assert estimate.low == pytest.approx(math.exp(-0.2484138) - 1, abs=1e-6)
    assert estimate.high == pytest.approx(math.exp(0.2484138) - 1, abs=1e-6)
    assert (estimate.n, estimate.confidence, estimate.method, estimate.why) == (3, 0.95, "paired-log-ratio-t", None)


def test_the_published_loss_of_a_published_port() -> None:
    estimate = paired_log_ratio_t([2200 / 7100] * 2)
    assert estimate.point == pytest.approx(-0.6901408)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_agrees_with_scipy_and_statsmodels(confidence: float) -> None:
    arm = [412.0, 398.5, 420.1, 405.9, 399.0]
    baseline = [1010.0, 1003.0, 995.5, 1021.0, 987.0]
    ratios = [a / b for a, b in zip(arm, baseline, strict=True)]
    estimate = paired_log_ratio_t(ratios, confidence)
    scipys = stats.ttest_rel(np.log(arm), np.log(baseline)).confidence_interval(confidence)
    other = DescrStatsW(np.log(ratios)).tconfint_mean(alpha=1 - confidence)
    assert estimate.low is not None
    assert estimate.high is not None
    assert [math.log1p(estimate.low), math.log1p(estimate.high)] == pytest.approx([scipys.low, scipys.high])
    assert [math.log1p(estimate.low), math.log1p(estimate.high)] == pytest.approx(list(other))


@pytest.mark.parametrize(
    ("ratios", "point", "why"),
    [
        ([], None, "no block has good runs"),
        ([0.9], -0.1, "1 block only"),
        ([0.9, 0.9], -0.1, "2 blocks only"),
        ([0.9, 0.9, 0.9], -0.1, "same ratio in every block"),
    ],
)
def test_without_enough_to_go_by_there_is_no_interval_and_a_reason(
    ratios: list[float], point: float | None, why: str
) -> None:
    estimate = paired_log_ratio_t(ratios)
    assert estimate.point == (None if point is None else pytest.approx(point))
    assert estimate.low is estimate.high is None
    assert estimate.why is not None
    assert why in estimate.why
    assert estimate.n == len(ratios)


@given(RATIOS)
def test_the_interval_holds_its_point(ratios: list[float]) -> None:
    estimate = paired_log_ratio_t(ratios)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.point is not None
    assert -1 <= estimate.low <= estimate.point <= estimate.high


@given(RATIOS, st.randoms())
def test_the_order_of_blocks_is_irrelevant(ratios: list[float], random: Random) -> None:
    shuffled = list(ratios)
    random.shuffle(shuffled)
    one, other = paired_log_ratio_t(ratios), paired_log_ratio_t(shuffled)
    assert one.low == pytest.approx(other.low, rel=1e-9, abs=1e-9)
    assert one.high == pytest.approx(other.high, rel=1e-9, abs=1e-9)


@given(RATIOS)
def test_swapping_arm_and_baseline_inverts_the_effect(ratios: list[float]) -> None:
    there, back = paired_log_ratio_t(ratios), paired_log_ratio_t([1 / ratio for ratio in ratios])
    assert there.low is not None
    assert there.high is not None
    assert back.low is not None
    assert back.high is not None
    assert (1 + there.low) * (1 + back.high) == pytest.approx(1)
    assert (1 + there.high) * (1 + back.low) == pytest.approx(1)


@pytest.mark.parametrize("effect", [0.0, 0.02, -0.5])
def test_covers_the_truth_at_five_blocks(effect: float) -> None:
    rng = np.random.default_rng(20160205)
    ratios = (1 + effect) * np.exp(rng.normal(0.0, 0.02, size=(2000, 5)))
    estimates = [paired_log_ratio_t(row) for row in ratios.tolist()]
    covered = sum(
        one.low <= effect <= one.high for one in estimates if one.low is not None and one.high is not None
    )
    assert 0.93 <= covered / len(estimates) <= 0.97
