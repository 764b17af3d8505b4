"""From records to findings: pairing, what drops out, what is published, what may not be claimed."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.unit.analyze import synthetic

from tare.analyze import Dropped, analyze
from tare.analyze.metrics import METRICS
from tare.errors import StoreError

ARMS = ("bare", "bridge")


def test_throughput_is_paired_by_block_and_given_as_a_fraction() -> None:
    tps = {"bare": [1000.0, 1100.0, 900.0], "bridge": [400.0, 462.0, 351.0]}
    made = [synthetic.record(block, arm, tps[arm][block]) for block in range(3) for arm in ARMS]
    finding = analyze(synthetic.study(ARMS), made).finding("bridge", "throughput")
    logs = [math.log(0.40), math.log(0.42), math.log(0.39)]
    low, high = stats.t.interval(0.95, 2, sum(logs) / 3, stats.sem(logs))
    assert finding.estimate.point == pytest.approx((0.40 * 0.42 * 0.39) ** (1 / 3) - 1)
    assert [finding.estimate.low, finding.estimate.high] == pytest.approx([math.expm1(low), math.expm1(high)])
    assert [block for block, _ in finding.blocks] == [0, 1, 2]
    assert [point for _, point in finding.blocks] == pytest.approx([-0.60, -0.58, -0.61])
    assert (finding.baseline, finding.levels, finding.estimate.n) == ("bare", {"path": "bridge"}, 3)
    assert finding.excludes_zero


def test_longer_latency_is_positive() -> None:
    made = [
        synthetic.record(block, arm, 1000.0 if arm == "bare" else 800.0 + block)
        for block in range(3)
        for arm in ARMS
    ]
    finding = analyze(synthetic.study(ARMS), made).finding("bridge", "latency_mean")
    assert finding.estimate.point == pytest.approx(0.25, abs=0.01)


def test_every_arm_but_the_baseline_has_a_finding_in_every_metric() -> None:
    analysis = analyze(synthetic.study(), synthetic.records())
    assert [(each.arm, each.metric) for each in analysis.findings] == [
        (arm, metric) for arm in synthetic.PATHS[1:] for metric in METRICS
    ]
    assert analysis.estimated
    assert analysis.good == 30


def test_only_the_good_attempt_of_a_run_counts_and_the_failed_one_is_listed() -> None:
    made = synthetic.records(ARMS)
    spoilt = made[0]
    retried = [synthetic.record(spoilt.block, spoilt.arm, None, position=spoilt.position, reason="connection lost")]
    retried += [spoilt.model_copy(update={"attempt": 2}), *made[1:]]
    study = synthetic.study(ARMS)
    with_retry, without = analyze(study, retried), analyze(study, made)
    assert with_retry.findings == without.findings
    (failure,) = with_retry.failures
    assert (failure.reason, failure.phase, failure.made_good) == ("connection lost", "measure", True)


def test_a_block_whose_run_failed_drops_out_with_the_reason() -> None:
    made = [each for each in synthetic.records(ARMS) if (each.block, each.arm) != (2, "bridge")]
    made += [synthetic.record(2, "bridge", None, attempt=attempt) for attempt in (1, 2)]
    analysis = analyze(synthetic.study(ARMS), made)
    finding = analysis.finding("bridge", "throughput")
    assert finding.dropped == (Dropped(2, "bridge failed 2 times"),)
    assert [block for block, _ in finding.blocks] == [0, 1, 3, 4]
    assert finding.estimate.n == 4
    assert [failure.made_good for failure in analysis.failures] == [False, False]


def test_a_block_without_its_baseline_drops_out_for_every_arm() -> None:
    made = [each for each in synthetic.records() if (each.block, each.arm) != (1, "bare")]
    findings = [one for one in analyze(synthetic.study(), made).findings if one.estimate.point is not None]
    recorded = {name for name, metric in METRICS.items() if metric.of(made[0]) is not None}
    assert {"throughput", "latency_mean", "cpu_per_operation"} < recorded
    assert {finding.metric for finding in findings} == recorded
    assert {finding.dropped for finding in findings} == {(Dropped(1, "bare was not run"),)}


@pytest.mark.parametrize(
    ("value", "why"), [(None, "bridge has no throughput"), (0.0, "bridge has a throughput of 0")]
)
def test_a_missing_or_zero_value_is_never_taken_for_a_figure(value: float | None, why: str) -> None:
    def spoil(tree: dict[str, Any]) -> None:
        tree["measurement"]["throughput_per_s"] = value

    made = synthetic.records(ARMS)
    made = [synthetic.changed(each, spoil) if (each.block, each.arm) == (0, "bridge") else each for each in made]
    finding = analyze(synthetic.study(ARMS), made).finding("bridge", "throughput")
    assert finding.dropped == (Dropped(0, why),)
    assert finding.estimate.n == 4


def test_two_blocks_give_a_point_and_no_interval() -> None:
    estimate = (
        analyze(synthetic.study(ARMS), synthetic.records(ARMS, blocks=2)).finding("bridge", "throughput").estimate
    )
    assert estimate.point is not None
    assert estimate.low is estimate.high is None
    assert estimate.why == "2 blocks only; an interval needs 3"


def test_nothing_run_gives_findings_without_figures() -> None:
    analysis = analyze(synthetic.study(), [])
    assert not analysis.estimated
    assert {finding.estimate.point for finding in analysis.findings} == {None}


def test_the_published_figure_is_derived_from_the_baselines() -> None:
    study = synthetic.study()
    bare = [figure.model_copy(update={"relative": None}) for figure in study.published]
    analysis = analyze(study.model_copy(update={"published": tuple(bare)}), synthetic.records())
    assert analysis.finding("published-loopback", "throughput").published == pytest.approx(-0.6901408)
    assert analysis.finding("published-address", "throughput").published is None
    assert analysis.finding("bridge", "latency_p95").published is None


def test_a_published_figure_in_another_unit_is_not_related_to_the_baselines() -> None:
    study = synthetic.study(ARMS)
    odd = [
        figure.model_copy(update={"relative": None, "unit": f"{n}/s"}) for n, figure in enumerate(study.published)
    ]
    analysis = analyze(study.model_copy(update={"published": tuple(odd)}), synthetic.records(ARMS))
    assert analysis.finding("bridge", "throughput").published is None


@pytest.mark.parametrize(("buckets", "claimed"), [(0, False), (1, False), (2, True)])
def test_a_percentile_within_one_bucket_is_not_claimed(buckets: int, claimed: bool) -> None:
    def slower(tree: dict[str, Any]) -> None:
        factor = (1 + synthetic.BUCKET) ** buckets * (1 + 1e-6 * tree["block"])
        tree["measurement"]["histogram"] = [[10.0 * factor, 100], [50.0, 1]]

    def plain(tree: dict[str, Any]) -> None:
        tree["measurement"]["histogram"] = [[10.0, 100], [50.0, 1]]

    made = [synthetic.changed(each, slower if each.arm == "bridge" else plain) for each in synthetic.records(ARMS)]
    finding = analyze(synthetic.study(ARMS), made).finding("bridge", "latency_p95")
    assert finding.resolution == synthetic.BUCKET
    assert finding.below_resolution is not claimed
    assert finding.excludes_zero is claimed


def test_a_difference_is_held_against_the_widest_bucket_of_all_runs() -> None:
    def wide(tree: dict[str, Any]) -> None:
        if (tree["arm"], tree["block"]) == ("bridge", 2):
            tree["measurement"]["latency"]["resolution"] = 0.5

    made = [synthetic.changed(each, wide) for each in synthetic.records(ARMS)]
    finding = analyze(synthetic.study(ARMS), made).finding("bridge", "latency_p95")
    assert (finding.resolution, finding.below_resolution) == (0.5, True)


def test_the_mean_does_not_depend_on_buckets() -> None:
    finding = analyze(synthetic.study(ARMS), synthetic.records(ARMS)).finding("bridge", "latency_mean")
    assert finding.resolution is None
    assert not finding.below_resolution


def test_records_of_another_study_are_refused() -> None:
    with pytest.raises(StoreError, match="does not have"):
        analyze(synthetic.study(ARMS), synthetic.records(("bare", "bridge", "host")))


def test_two_runs_of_an_arm_in_one_block_are_refused() -> None:
    made = [synthetic.record(0, "bare", 1000.0), synthetic.record(0, "bare", 1010.0, position=1)]
    with pytest.raises(StoreError, match="two runs"):
        analyze(synthetic.study(ARMS), made)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1000.0), st.randoms(use_true_random=False))
def test_scale_of_the_machine_and_order_of_records_are_irrelevant(scale: float, random: Any) -> None:
    def faster(tree: dict[str, Any]) -> None:
        tree["measurement"]["throughput_per_s"] *= scale

    made = synthetic.records(ARMS)
    other = [synthetic.changed(each, faster) for each in made]
    random.shuffle(other)
    study = synthetic.study(ARMS)
    one, two = (analyze(study, each).finding("bridge", "throughput").estimate for each in (made, other))
    assert (two.point, two.low, two.high) == pytest.approx((one.point, one.low, one.high), abs=1e-9)


def test_swapping_the_baseline_inverts_the_effect() -> None:
    made = synthetic.records(ARMS)
    forth = analyze(synthetic.study(ARMS), made).finding("bridge", "throughput").estimate
    back = analyze(synthetic.study(("bridge", "bare")), made).finding("bare", "throughput").estimate
    assert forth.point is not None
    assert back.point is not None
    assert (1 + forth.point) * (1 + back.point) == pytest.approx(1)


def test_absolute_values_are_given_of_every_arm() -> None:
    made = [synthetic.record(block, arm, 1000.0 + block) for block in range(3) for arm in ARMS]
    bare, bridge = analyze(synthetic.study(ARMS), made).arms
    level = bare.values["throughput"]
    assert (level.median, level.smallest, level.largest, level.n) == (1001.0, 1000.0, 1002.0, 3)
    assert (level.published, level.published_unit) == (7100.0, "transactions/s")
    assert (bare.is_baseline, bridge.is_baseline, bare.unit, bare.good) == (True, False, "transactions", 3)
