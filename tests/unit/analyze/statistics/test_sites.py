"""The effect over several sites: known answers, and how often its interval covers the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import stdtr

from tare.analyze.estimate import OverSites
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.analyze.statistics.sites import mean_of_sites, over_sites, stands_out

TRUTH = math.log(0.93)
STUDIES = 1500
NOISE = 0.02


def effect(ratios: dict[str, list[float]]) -> OverSites:
    pooled = paired_log_ratio_t([ratio for each in ratios.values() for ratio in each])
    sites = over_sites(ratios, 0.95, pooled)
    assert sites is not None
    return sites


def test_with_equally_many_blocks_it_is_student_s_t_over_the_sites_means() -> None:
    rng = np.random.default_rng(1)
    logs = rng.normal(TRUTH, 0.02, (5, 4)) + rng.normal(0, 0.03, (5, 1))
    estimate = effect({f"s{n}": list(np.exp(row)) for n, row in enumerate(logs)}).estimate
    low, high = stats.t.interval(0.95, 4, logs.mean(axis=1).mean(), stats.sem(logs.mean(axis=1)))
    assert estimate.point == pytest.approx(math.expm1(logs.mean()))
    assert estimate.low == pytest.approx(math.expm1(low))
    assert estimate.high == pytest.approx(math.expm1(high))


def test_the_variance_between_sites_is_that_of_the_analysis_of_variance() -> None:
    sites = mean_of_sites([np.array([0.0, 0.2]), np.array([1.0, 1.2]), np.array([2.0, 2.2])])
    assert sites is not None
    assert sites.between == pytest.approx(1 - 0.02 / 2)
    by_hand = stats.f_oneway([0.0, 0.2], [1.0, 1.2], [2.0, 2.2]).pvalue
    ratios = {name: list(np.exp(row)) for name, row in {"a": [0.0, 0.2], "b": [1.0, 1.2], "c": [2.0, 2.2]}.items()}
    assert effect(ratios).between_p == pytest.approx(by_hand)


def test_two_sites_predict_no_third() -> None:
    sites = effect({"a": [0.9, 0.91, 0.92], "b": [0.95, 0.94, 0.96]})
    assert (sites.next_low, sites.next_high) == (None, None)
    assert sites.estimate.low is not None


def test_one_site_is_no_matter_of_sites() -> None:
    assert over_sites({"a": [0.9, 0.91]}, 0.95, paired_log_ratio_t([0.9, 0.91])) is None


def test_without_any_spread_there_is_no_interval() -> None:
    estimate = effect({"a": [0.9, 0.9], "b": [0.9, 0.9]}).estimate
    assert estimate.low is None
    assert estimate.why is not None


def test_a_site_unlike_the_rest_is_found_and_none_is_among_equals() -> None:
    rng = np.random.default_rng(3)
    means = list(rng.normal(0, 0.01, 8))
    assert (stands_out(means) or (0, 0.0))[1] > 0.01
    parts = stands_out([*means, 0.2])
    assert parts is not None
    assert (parts[0], parts[1] < 0.01) == (8, True)
    assert stands_out(means[:3]) is None


def test_an_outlier_is_claimed_in_one_study_of_a_hundred() -> None:
    rng = np.random.default_rng(4)
    false = sum((stands_out(list(rng.normal(0, 1, 6))) or (0, 1.0))[1] < 0.01 for _ in range(3000))
    assert false / 3000 < 0.016


def covered(counts: Sequence[int], between: float, studies: int = STUDIES) -> tuple[float, float]:
    """How often the interval over sites covers the truth, and how often that of all blocks in one pot does."""
    rng = np.random.default_rng(20)
    hits = naive = 0
    for _ in range(studies):
        logs = [rng.normal(TRUTH + rng.normal(0, between), NOISE, count) for count in counts]
        sites = mean_of_sites(logs)
        assert sites is not None
        hits += abs(sites.mean - TRUTH) <= stats_t(sites.freedom) * sites.error
        pot = np.concatenate(logs)
        naive += abs(pot.mean() - TRUTH) <= stats_t(len(pot) - 1) * pot.std(ddof=1) / math.sqrt(len(pot))
    return hits / studies, naive / studies


@cache
def stats_t(freedom: int) -> float:
    return float(stats.t.ppf(0.975, freedom))


@pytest.mark.parametrize("between", [0.0, 0.05])
@pytest.mark.parametrize(("sites", "blocks"), [(2, 4), (3, 10), (10, 4), (20, 6)])
def test_the_interval_over_sites_covers_the_truth_as_often_as_it_says(
    sites: int, blocks: int, between: float
) -> None:
    assert 0.93 <= covered([blocks] * sites, between)[0] <= 0.97


def test_all_blocks_in_one_pot_do_not_where_sites_differ() -> None:
    assert covered([10] * 4, 0.05)[1] < 0.60


@pytest.mark.parametrize("between", [0.0, 0.01, 0.05])
def test_blocks_left_over_by_the_last_round_change_nothing(between: float) -> None:
    assert 0.93 <= covered([5, 5, 5, 4, 4, 4], between)[0] <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("between", [0.0, 0.005, 0.01, 0.02, 0.05])
@pytest.mark.parametrize("blocks", [4, 10, 25, 50])
@pytest.mark.parametrize("sites", [2, 3, 5, 10, 20, 40])
def test_coverage_over_the_whole_grid(sites: int, blocks: int, between: float) -> None:
    assert 0.93 <= covered([blocks] * sites, between, 4000)[0] <= 0.97


@pytest.mark.parametrize("sites", [4, 5, 9, 17, 130, 200])
def test_the_site_that_stands_out_is_that_of_one_comparison_after_the_other(sites: int) -> None:
    for seed in range(20):
        means = np.random.default_rng(seed).normal(0, 0.01, sites)
        means[seed % sites] += 0.002 * seed
        p_values = []
        for n in range(sites):
            rest = np.delete(means, n)
            t = abs(float(means[n] - rest.mean())) / (float(rest.std(ddof=1)) * math.sqrt(1 + 1 / (sites - 1)))
            p_values.append(min(1.0, 2 * sites * float(stdtr(sites - 2, -t))))
        most = int(np.argmin(p_values))
        assert stands_out(list(means)) == (most, p_values[most])
