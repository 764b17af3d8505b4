"""Equivalent, different, inconclusive; Holm."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]  # has no stubs
from statsmodels.stats.weightstats import DescrStatsW  # type: ignore[import-untyped]  # has no stubs

from tare.analyze import verdict as judged
from tare.analyze.estimate import Verdict
from tare.analyze.verdict import PValues, adjusted, holm, verdict

NARROW = [0.998, 1.001, 1.0, 1.002, 0.999, 1.0, 0.997, 1.003]
SHIFTED = [ratio * 0.95 for ratio in NARROW]
WIDE = [0.8, 1.2, 0.9, 1.1, 1.3, 0.75, 1.0, 0.95]


@pytest.mark.parametrize(
    ("ratios", "margin", "expected"),
    [
        (NARROW, 0.02, Verdict.EQUIVALENT),
        (SHIFTED, 0.02, Verdict.DIFFERENT),
        (WIDE, 0.02, Verdict.INCONCLUSIVE),
        (SHIFTED, 0.10, Verdict.EQUIVALENT),
        ([1.0, 1.0], 0.02, Verdict.INCONCLUSIVE),
        ([1.0] * 8, 0.02, Verdict.INCONCLUSIVE),
    ],
)
def test_verdict(ratios: list[float], margin: float, expected: Verdict) -> None:
    assert verdict(judged.p_values(ratios, margin)) is expected


@pytest.mark.parametrize("ratios", [NARROW, SHIFTED, WIDE])
def test_agrees_with_statsmodels(ratios: list[float]) -> None:
    values = judged.p_values(ratios, 0.02)
    described = DescrStatsW(np.log(ratios))
    assert values is not None
    assert values.outside == pytest.approx(described.ttost_mean(-np.log(1.02), np.log(1.02))[0])
    assert values.zero == pytest.approx(described.ttest_mean(0.0)[1])


def test_arm_and_baseline_swapped_get_the_same_verdict() -> None:
    one, other = judged.p_values(WIDE, 0.05), judged.p_values([1 / ratio for ratio in WIDE], 0.05)
    assert one is not None
    assert other is not None
    assert (one.outside, one.zero) == pytest.approx((other.outside, other.zero))


def test_ratios_that_are_nearly_alike_are_tested_without_a_warning() -> None:
    values = judged.p_values([1 + 1e-9 * n for n in range(8)], 0.02)
    assert values is not None
    assert values.outside is not None
    assert values.outside < 1e-9
    assert values.zero == pytest.approx(0.0049238, rel=1e-3)  # t(7) = mean 3.5 over 2.449 / √8


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        judged.p_values(NARROW, 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_holm_is_what_statsmodels_says(seed: int) -> None:
    values = np.random.default_rng(seed).beta(0.5, 2, size=1 + seed)
    raw = {str(n): float(p) for n, p in enumerate(values)}
    assert list(holm(raw).values()) == pytest.approx(list(multipletests(values, method="holm")[1]))


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.2 times 4, 3, 2, 1, never below the one before.
    values = holm({"a": 0.01, "b": 0.03, "c": 0.02, "d": 0.2})
    assert values == pytest.approx({"a": 0.04, "c": 0.06, "b": 0.06, "d": 0.2})
    assert holm({}) == {}


def test_a_family_is_adjusted_kind_by_kind() -> None:
    values = adjusted({"p50": PValues(outside=0.01, zero=0.4), "p95": PValues(outside=0.04, zero=0.3)})
    assert (values["p50"].outside, values["p50"].zero) == pytest.approx((0.02, 0.6))
    assert (values["p95"].outside, values["p95"].zero) == pytest.approx((0.04, 0.6))


def test_equivalence_is_wrongly_found_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(3)
    edge = np.exp(np.log(1.02) + rng.normal(0, 0.01, (1000, 8)))
    wrong = sum(verdict(judged.p_values(row, 0.02)) is Verdict.EQUIVALENT for row in edge.tolist())
    assert 0.03 <= wrong / 1000 <= 0.06
