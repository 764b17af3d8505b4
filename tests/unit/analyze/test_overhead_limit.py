"""Overheads against a limit: decided by the interval, in the direction in which the metric is bad."""

from __future__ import annotations

import math

import pytest
from tests.unit.analyze import synthetic
from tests.unit.stores import known

from tare.analyze import Estimate, Finding, analyze
from tare.analyze.overhead_limit import LimitCheck, Outcome, check_limit, worst
from tare.study.protocol_spec import FixedSpec

STUDY = synthetic.study(("bare", "bridge"))


def finding(metric: str, low: float | None, high: float | None, *, resolution: float | None = None) -> Finding:
    point = None if low is None or high is None else (low + high) / 2
    why = "2 blocks only" if low is None else None
    return Finding(
        study="percona-2016",
        arm="bridge",
        levels={},
        baseline="bare",
        metric=metric,
        estimate=Estimate(point, low, high, 5, 0.95, "paired-log-ratio-t", why),
        published=None,
        blocks=(),
        resolution=resolution,
    )


def decided(one: Finding, most: float, unfinished: str | None = None) -> LimitCheck:
    return check_limit(STUDY, analyze(STUDY, []), [one], {one.metric: most}, unfinished)[0]


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-0.04, -0.02, Outcome.PASS),  # 2 to 4 % fewer operations
        (-0.05, -0.02, Outcome.PASS),  # the limit itself is within it
        (-0.051, -0.02, Outcome.INCONCLUSIVE),
        (-0.30, 0.20, Outcome.INCONCLUSIVE),
        (-0.08, -0.051, Outcome.FAIL),
        (-0.08, -0.05, Outcome.INCONCLUSIVE),
        (0.10, 0.20, Outcome.PASS),  # a gain of throughput is no overhead
    ],
)
def test_only_a_loss_of_throughput_can_be_beyond_the_limit(low: float, high: float, outcome: Outcome) -> None:
    one = decided(finding("throughput", low, high), 0.05)
    assert one.outcome is outcome
    assert (one.low, one.high) == (low, high)


@pytest.mark.parametrize(
    ("metric", "low", "high", "outcome"),
    [
        ("latency_mean", 0.02, 0.04, Outcome.PASS),
        ("latency_mean", 0.02, 0.06, Outcome.INCONCLUSIVE),
        ("latency_mean", 0.06, 0.08, Outcome.FAIL),
        ("latency_mean", -0.30, -0.20, Outcome.PASS),  # shorter
        ("cpu_per_operation", 0.06, 0.08, Outcome.FAIL),
        ("io_per_operation", 1.5, 2.0, Outcome.FAIL),
    ],
)
def test_an_overhead_of_anything_else_is_a_gain(metric: str, low: float, high: float, outcome: Outcome) -> None:
    assert decided(finding(metric, low, high), 0.05).outcome is outcome


def test_a_percentile_is_known_to_one_bucket_at_best() -> None:
    one = decided(finding("latency_p95", 0.02, 0.04, resolution=0.02), 0.05)
    assert (one.low, one.high) == pytest.approx((1.02 / 1.02 - 1, 1.04 * 1.02 - 1))
    assert one.outcome is Outcome.INCONCLUSIVE
    assert decided(finding("latency_p95", 0.06, 0.09, resolution=0.02), 0.05).outcome is Outcome.INCONCLUSIVE
    assert decided(finding("latency_p95", 0.08, 0.09, resolution=0.02), 0.05).outcome is Outcome.FAIL


def test_without_an_interval_nothing_is_decided_however_small_the_point() -> None:
    one = decided(finding("throughput", None, None), 0.9)
    assert (one.outcome, one.why) == (Outcome.INCONCLUSIVE, "2 blocks only")


def test_an_unfinished_study_decides_nothing() -> None:
    for low, high in ((-0.01, 0.01), (-0.5, -0.4)):
        one = decided(finding("throughput", low, high), 0.05, unfinished="3 blocks of 8")
        assert (one.outcome, one.why) == (Outcome.INCONCLUSIVE, "3 blocks of 8")


def test_the_intervals_of_a_published_baseline_decide_nothing() -> None:
    study = STUDY.model_copy(update={"protocol": FixedSpec(name="fixed")})
    (one,) = check_limit(study, analyze(study, []), [finding("throughput", -0.01, 0.01)], {"throughput": 0.05})
    assert one.outcome is Outcome.INCONCLUSIVE
    assert "fixed" in str(one.why)


def test_an_invalid_study_fails_whatever_its_intervals_say() -> None:
    rates = {"bare": [1000.0, 1001.0, 1002.0], "bridge": [1000.0, 1002.0, 1001.0]}
    records = known({**rates, "baseline-again": [1100.0, 1102.0, 1101.0]})
    arms = (*STUDY.arms, STUDY.arms[0].model_copy(update={"name": "baseline-again", "control": True}))
    study = STUDY.model_copy(update={"arms": arms})
    analysis = analyze(study, records)
    assert analysis.invalid
    (one,) = check_limit(study, analysis, [analysis.finding("bridge", "throughput")], {"throughput": 0.05})
    assert (one.outcome, one.why) == (Outcome.FAIL, "the control differs from the baseline: the study is invalid")


def test_known_rates_give_the_interval_that_decides() -> None:
    rates = {"bare": [1000.0] * 4, "bridge": [940.0, 950.0, 960.0, 950.0]}
    analysis = analyze(STUDY, known(rates))
    (one,) = check_limit(STUDY, analysis, [analysis.finding("bridge", "throughput")], {"throughput": 0.06})
    logs = [math.log(each / 1000) for each in rates["bridge"]]
    mean = sum(logs) / 4
    reach = 3.182446305284263 * math.sqrt(sum((each - mean) ** 2 for each in logs) / 3) / 2  # t(3; 0.975) is 3.182
    assert (one.low, one.high) == pytest.approx((math.exp(mean - reach) - 1, math.exp(mean + reach) - 1))
    assert one.outcome is Outcome.INCONCLUSIVE  # -0.063 is below -0.06 though the point is -0.050
    assert (
        check_limit(STUDY, analysis, [analysis.finding("bridge", "throughput")], {"throughput": 0.07})[0].outcome
        is Outcome.PASS
    )


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        ([], Outcome.INCONCLUSIVE),
        ([Outcome.PASS, Outcome.PASS], Outcome.PASS),
        ([Outcome.PASS, Outcome.INCONCLUSIVE], Outcome.INCONCLUSIVE),
        ([Outcome.INCONCLUSIVE, Outcome.FAIL, Outcome.PASS], Outcome.FAIL),
    ],
)
def test_one_failure_fails_all_and_all_must_pass(outcomes: list[Outcome], whole: Outcome) -> None:
    assert worst(outcomes) is whole
