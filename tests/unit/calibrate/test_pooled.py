from __future__ import annotations

import math

import pytest

from tare.calibrate.outcome import ContrastResult
from tare.calibrate.pooled import block_spread, injected, mean, share, smallest
from tare.calibrate.summary import Effort, identity_of, summarise
from tare.record.host_facts import HostFacts


def observed(
    study: int, *, point: float = 0.0, half: float = 0.01, truth: float | None = 0.0, **more: object
) -> ContrastResult:
    return ContrastResult.model_validate(
        {
            "kind": "work", "study": study, "arm": "a", "deployment": "bare", "injection": "more", "n": 8,
            "point": point, "low": point - half, "high": point + half, "spread": 0.02, "truth": truth,
            "run_s": 4.0, "usual": True, **more,
        }
    )  # fmt: skip


def test_the_exact_interval_of_a_share_is_clopper_and_pearsons() -> None:
    """0 of 40: the upper end is 1 - 0.025^(1/40)."""
    frame = share(0, 40)
    assert frame.low == 0.0
    assert frame.high == pytest.approx(1 - 0.025 ** (1 / 40))
    ten = share(2, 40)  # R: binom.test(2, 40)$conf.int
    assert ten.low == pytest.approx(0.0061136, abs=1e-6)
    assert ten.high == pytest.approx(0.1691966, abs=1e-6)


def test_a_share_of_nothing_has_no_interval() -> None:
    assert share(0, 0).share is None


def test_the_smallest_overhead_follows_from_spread_blocks_and_t() -> None:
    """10 min of blocks of 12 s: 50. t(49, 1 - 0.035 / 2) = 2.168547 (quadrature), t · 0.02 / √50 = 0.0061336."""
    overhead = smallest(0.02, 12.0, 10)
    assert overhead.blocks == 50
    assert overhead.overhead == pytest.approx(1 - math.exp(-0.0061336), abs=1e-7)


def test_too_few_blocks_show_nothing() -> None:
    assert smallest(0.02, 30.0, 1).overhead is None


def test_more_minutes_show_smaller_overheads() -> None:
    ten, sixty = smallest(0.02, 12.0, 10).overhead, smallest(0.02, 12.0, 60).overhead
    assert ten is not None
    assert sixty is not None
    assert sixty < ten


def test_spreads_are_pooled_by_their_degrees_of_freedom() -> None:
    seen = [
        observed(1, injection=None, spread=0.03, n=3),
        observed(2, injection=None, spread=0.01, n=9),
        observed(3, spread=9.0),
        observed(4, injection=None, spread=9.0, usual=False),
    ]
    assert block_spread(seen) == pytest.approx(math.sqrt((2 * 0.03**2 + 8 * 0.01**2) / 10))


def test_an_interval_that_misses_the_others_truth_is_not_covered() -> None:
    seen = [observed(n, point=-0.05, truth=-0.05 + 0.0001 * n) for n in range(1, 6)]
    seen.append(observed(6, point=-0.02, truth=-0.02))  # its own truth agrees with it, the others' does not
    covered = injected(seen, "more").covered
    assert (covered.count, covered.of) == (5, 6)


def test_an_interval_is_widened_by_what_the_truth_of_the_others_may_be_wrong() -> None:
    """0.00, 0.02, 0.04: mean 0.02, s 0.02, t(2; 0.975) = 4.3027, error 0.04968; with half of 0.01, 0.05068."""
    others = [observed(n, point=0.9, truth=0.02 * n) for n in range(3)]
    for off, covered in ((0.0506, 1), (0.0508, 0)):
        result = injected([*others, observed(3, point=0.02 + off, half=0.01, truth=0.02)], "more").covered
        assert (result.count, result.of) == (covered, 4)


def test_a_study_without_a_reading_is_estimated_and_not_judged() -> None:
    recovery = injected([observed(1, truth=None), observed(2), observed(3), observed(4)], "more")
    assert (recovery.estimate.n, recovery.truth.n, recovery.covered.of) == (4, 3, 3)


def test_two_values_have_a_mean_and_no_interval() -> None:
    value = mean([1.0, 3.0])
    assert (value.point, value.low, value.high) == (2.0, None, None)


def test_the_interval_of_a_mean_is_students() -> None:
    value = mean([1.0, 3.0, 5.0])  # t(2; 0.975) · 2 / √3
    assert (value.low, value.high) == pytest.approx((3 - 4.968275, 3 + 4.968275), abs=1e-5)


def test_bias_is_a_difference_of_fractions_and_not_of_logarithms() -> None:
    seen = [observed(n, point=math.log(0.9), truth=math.log(0.8)) for n in range(3)]
    assert injected(seen, "more").bias.point == pytest.approx(0.1)


def test_a_block_of_the_smallest_study_is_three_runs_of_the_usual_kinds() -> None:
    seen = [observed(n, injection=None) for n in range(3)] + [observed(9, run_s=99.0, usual=False)]
    effort = Effort(studies=3, runs=9, failed=0, machine_s=9.0, finished_at=None)
    summary = summarise(identity_of(HostFacts(), None), seen, effort, "0")
    assert summary.block_s == pytest.approx(12.0)
    assert [each.blocks for each in summary.smallest] == [5, 50, 300]
