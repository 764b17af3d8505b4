"""Each protocol is judged by the estimator that belongs to it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze import analyze
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.record.run_record import RunRecord
from tare.study.model import Study
from tare.study.protocol_spec import BucketsSpec, FixedSpec, InterleaveSpec, ProtocolSpec


def study_of(protocol: ProtocolSpec) -> Study:
    return synthetic.study(("bare", "bridge"), protocol=protocol)


def with_windows(record: RunRecord) -> RunRecord:
    """Four windows that the run's throughput is the mean of."""

    def change(tree: dict[str, Any]) -> None:
        rate = tree["measurement"]["throughput_per_s"]
        tree["measurement"]["windows"] = [
            {"end_s": n + 1.0, "throughput_per_s": rate * (1 + shift), "latency_p95_ms": None}
            for n, shift in enumerate((-0.01, 0.01, 0.02, -0.02))
        ]

    return synthetic.changed(record, change)


RECORDS = [with_windows(record) for record in synthetic.records(("bare", "bridge"), blocks=8)]


def test_after_looks_the_interval_is_the_wider_one_that_then_covers_95_percent() -> None:
    finding = analyze(study_of(InterleaveSpec()), RECORDS).finding("bridge", "throughput")
    wanted = paired_log_ratio_t([1 + point for _, point in finding.blocks], 0.965)
    assert (finding.estimate.low, finding.estimate.high) == pytest.approx((wanted.low, wanted.high))
    assert (finding.estimate.confidence, finding.estimate.method) == (0.95, "sequential-paired-log-ratio-t")


def test_without_looks_it_is_the_plain_one() -> None:
    finding = analyze(study_of(InterleaveSpec(target=None)), RECORDS).finding("bridge", "throughput")
    assert finding.estimate == paired_log_ratio_t([1 + point for _, point in finding.blocks], 0.95)


def test_fixed_is_judged_by_welch() -> None:
    estimate = analyze(study_of(FixedSpec(name="fixed")), RECORDS).finding("bridge", "throughput").estimate
    assert (estimate.method, estimate.n) == ("welch", 8)
    assert estimate.point == pytest.approx(-0.07, abs=0.03)


def test_fixed_pairs_by_repetition_where_the_study_asks_for_it() -> None:
    study = study_of(FixedSpec(name="fixed", blocks=8, paired=True))
    finding = analyze(study, RECORDS).finding("bridge", "throughput")
    assert finding.estimate == paired_log_ratio_t([1 + point for _, point in finding.blocks], 0.95)
    assert finding.judgement is not None
    assert finding.judgement.p_zero is not None  # of a publication's way it is withheld


def test_buckets_are_judged_by_all_windows_in_one_pot() -> None:
    analysis = analyze(study_of(BucketsSpec(name="buckets")), RECORDS)
    estimate = analysis.finding("bridge", "throughput").estimate
    assert (estimate.method, estimate.n) == ("pooled-windows-z", 32)
    assert estimate.point == pytest.approx(-0.07, abs=0.03)


@pytest.mark.parametrize("metric", ["latency_mean", "latency_p95"])
def test_a_metric_that_windows_do_not_have_has_no_estimate(metric: str) -> None:
    estimate = analyze(study_of(BucketsSpec(name="buckets")), RECORDS).finding("bridge", metric).estimate
    assert (estimate.point, estimate.low) == (None, None)
    assert estimate.why is not None
