"""Verdicts wired to findings: margins, families, resolution, and what gets no verdict."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze import Finding, analyze
from tare.analyze.estimate import BlockEffect, Verdict
from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.analyze.verdict import holm, judged, p_values, verdict
from tare.record.run_record import RunRecord
from tare.study.metrics import COMPARED_METRIC
from tare.study.model import Arm, Study
from tare.study.protocol_spec import BucketsSpec, InterleaveSpec

ARMS = ("bare", "bridge")


def study(arms: tuple[str, ...] = ARMS, blocks: int = 12, **margins: float) -> Study:
    return synthetic.study(arms, blocks, margins=margins)


def runs(noise: float = 0.004, arms: tuple[str, ...] = ARMS) -> list[RunRecord]:
    return synthetic.records(arms, 12, noise=noise)


def finding_of(metric: str, *, arm: str = "bridge", noise: float = 0.004, **margins: float) -> Finding:
    return analyze(study((*ARMS, "host"), 12, **margins), runs(noise, (*ARMS, "host"))).finding(arm, metric)


def test_the_names_that_a_study_may_use_are_those_of_the_metrics() -> None:
    assert all(re.search(COMPARED_METRIC, name) for name in (*METRICS, "read_latency_p95"))
    assert not re.search(COMPARED_METRIC, "latency")
    assert not re.search(COMPARED_METRIC, "read_throughput")


def test_without_a_margin_there_is_no_verdict_but_the_tests_are_there() -> None:
    judgement = finding_of("throughput").judgement
    assert (judgement.margin, judgement.verdict, judgement.withheld, judgement.p_outside) == (None,) * 4
    assert judgement.p_zero is not None
    assert judgement.p_zero < 1e-6
    assert judgement.differs


@pytest.mark.parametrize(
    ("arm", "noise", "margin", "expected"),
    [
        ("bridge", 0.004, 0.02, Verdict.DIFFERENT),
        ("bridge", 0.004, 0.2, Verdict.EQUIVALENT),
        ("host", 0.004, 0.02, Verdict.EQUIVALENT),
        ("host", 0.1, 0.02, Verdict.INCONCLUSIVE),
    ],
)
def test_a_margin_gives_a_verdict(arm: str, noise: float, margin: float, expected: Verdict) -> None:
    assert finding_of("throughput", arm=arm, noise=noise, throughput=margin).judgement.verdict is expected


def test_the_verdict_on_throughput_is_that_of_its_interval() -> None:
    """At the rule's alpha, as after looks only that covers what it says."""
    sequential = study(throughput=0.02).model_copy(update={"protocol": InterleaveSpec(blocks=12)})
    for seed in range(40):
        made = synthetic.records(("bare", "host"), 12, seed=seed, noise=0.008)
        whole = sequential.model_copy(update={"arms": tuple(synthetic.arm(name) for name in ("bare", "host"))})
        one = analyze(whole, made).finding("host", "throughput")
        assert one.judgement.family == 1
        if one.judgement.verdict is not Verdict.EQUIVALENT:
            assert (one.judgement.verdict is Verdict.DIFFERENT) is one.excludes_zero
        assert one.judgement.differs is one.excludes_zero


def test_secondary_metrics_of_an_arm_are_one_family_and_arms_are_not() -> None:
    three, two = (analyze(study(arms), runs(arms=arms)) for arms in ((*ARMS, "host"), ARMS))
    one = [each for each in three.findings if each.arm == "bridge" and each.metric != PRIMARY]
    raw = {each.metric: p_values([1 + effect for _, effect in each.blocks], None) for each in one}
    tested = {name: p.zero for name, p in raw.items() if p is not None}
    assert {each.metric: each.judgement.p_zero for each in one if each.metric in tested} == pytest.approx(
        holm(tested)
    )
    assert {each.judgement.family for each in one} == {len(tested)}
    assert len(tested) == 5
    assert two.finding("bridge", "latency_p95").judgement.family == 5


def test_holm_takes_back_what_one_metric_alone_would_have_shown() -> None:
    """One metric with an interval just above zero, among four that show nothing."""

    def made(metric: str, mean: float) -> Finding:
        ratios = [math.exp(mean + wiggle) for wiggle in (-0.01, 0.01) * 6]
        return Finding(
            study="s", arm="bridge", levels={}, baseline="bare", metric=metric, estimate=paired_log_ratio_t(ratios),
            published=None, blocks=tuple(BlockEffect(n, ratio - 1) for n, ratio in enumerate(ratios)),
        )  # fmt: skip

    names = [name for name in METRICS if name != PRIMARY][:5]
    family = judged(
        study(), [made(name, 0.008 if n == 0 else 0.001) for n, name in enumerate(names)], invalid=False
    )
    assert 0.01 < (family[0].judgement.p_zero or 0) / 5 < 0.05
    assert (family[0].excludes_zero, family[0].is_supported) == (True, False)
    (alone,) = judged(study(), [made(names[0], 0.008)], invalid=False)
    assert (alone.excludes_zero, alone.is_supported) == (True, True)


def test_a_difference_within_one_bucket_is_inconclusive_and_equivalence_pays_for_the_bucket() -> None:
    width = 0.018
    within = [1.010, 1.011, 1.009, 1.012, 1.010, 1.008]
    tests = p_values(within, 0.02, width)
    assert verdict(tests, resolved=False) is Verdict.INCONCLUSIVE
    assert verdict(p_values(within, 0.02)) is Verdict.EQUIVALENT
    assert verdict(p_values(within, 0.04, width)) is Verdict.EQUIVALENT
    assert verdict(p_values(within, 0.018, width)) is not Verdict.EQUIVALENT
    one = p_values(within, 0.01, width)
    assert one is not None
    assert one.outside == 1.0


def test_a_finding_below_the_resolution_is_never_different() -> None:
    def one_bucket(tree: dict[str, Any]) -> None:
        base = 10.0 * (1 + 1e-6 * tree["block"])
        factor = 1 + synthetic.BUCKET if tree["arm"] == "bridge" else 1.0
        tree["measurement"]["histogram"] = [[base * factor, 100], [50.0, 1]]

    made = [synthetic.changed(each, one_bucket) for each in runs()]
    made = [each for each in made if each.arm in ARMS]
    judgement = analyze(study(latency_p95=0.01), made).finding("bridge", "latency_p95").judgement
    assert (judgement.verdict, judgement.differs) == (Verdict.INCONCLUSIVE, False)


def test_an_invalid_study_and_a_published_baseline_get_no_verdict() -> None:
    arms = tuple(synthetic.arm(name) for name in ARMS)
    control = Arm(**{**arms[0].model_dump(), "name": "again", "control": True})
    made = [*runs(), *[_as_control(each) for each in runs() if each.arm == "bridge"]]
    invalid = analyze(study(throughput=0.05).model_copy(update={"arms": (*arms, control)}), made)
    assert invalid.invalid
    judgement = invalid.finding("bridge", "throughput").judgement
    assert judgement.verdict is None
    assert "invalid" in str(judgement.withheld)

    published = study(throughput=0.05).model_copy(update={"protocol": BucketsSpec(name="buckets", control=False)})
    judgement = analyze(published, runs()).finding("bridge", "throughput").judgement
    assert judgement.verdict is None
    assert "published method" in str(judgement.withheld)


def _as_control(record: RunRecord) -> RunRecord:
    return record.model_copy(update={"arm": "again", "run_id": f"{record.run_id}-again"})
