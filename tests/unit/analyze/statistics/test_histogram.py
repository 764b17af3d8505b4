"""Percentiles of histograms: known answers, sysbench's own print, and what a last bucket cannot tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.analyze import synthetic

from tare.analyze.metrics import METRICS
from tare.analyze.statistics.histogram import percentile, percentile_of
from tare.record.measurement import Latency, Measurement
from tare.workloads.sysbench.output import read_output

SYSBENCH = Path(__file__).resolve().parents[3] / "data" / "sysbench"


def test_percentiles_by_hand() -> None:
    histogram = [(1.0, 50), (2.0, 44), (3.0, 5), (9.0, 1)]
    assert [percentile(histogram, p) for p in (0, 50, 51, 94, 95, 99, 100)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 9.0]
    assert percentile([], 95) is None
    assert percentile([(4.0, 1)], 50) == 4.0


def test_a_percentile_of_few_events_is_a_value_that_occurred() -> None:
    assert percentile([(1.0, 0), (2.0, 5)], 1) == 2.0
    assert percentile([], 50) is None
    assert percentile([(1.0, 0)], 50) is None


@given(st.lists(st.integers(1, 60), min_size=1, max_size=200))
def test_percentiles_are_those_of_all_events(values: list[int]) -> None:
    histogram = [(float(value), values.count(value)) for value in sorted(set(values))]
    for percent in (50, 95, 99):
        nearest = sorted(values)[max(1, int(len(values) * percent / 100 + 0.5)) - 1]
        assert percentile(histogram, percent) == nearest


@pytest.mark.parametrize("name", ["closed", "rate", "deadlocks"])
def test_what_sysbench_prints_is_what_its_histogram_gives(name: str) -> None:
    printed = read_output((SYSBENCH / f"{name}.stdout").read_text())
    milliseconds = percentile([(bucket.value_ms, bucket.count) for bucket in printed.histogram], 95)
    assert milliseconds == pytest.approx(printed.figure("latency_p95_ms"), abs=0.0051)


def test_a_last_bucket_that_holds_slower_ones_too_gives_no_value() -> None:
    part = Measurement(histogram=((1.0, 90), (100_000.0, 10)), latency=Latency(max_ms=240_000.0, resolution=0.018))
    assert percentile_of(part, 95) is None
    assert percentile_of(part, 50) == 1.0
    closer = replace(part, latency=Latency(max_ms=100_900.0, resolution=0.018))
    assert percentile_of(closer, 95) == 100_000.0


def test_a_metric_counts_from_the_histogram_and_not_from_the_generator_s_print() -> None:
    measured = synthetic.measurement(1000.0)
    printed = replace(measured, latency=replace(measured.latency, p95_ms=0.001))
    assert METRICS["latency_p95"].read(printed) == synthetic.bucket(24.0)
    assert METRICS["latency_p95"].read(replace(printed, histogram=())) == 0.001
    assert METRICS["latency_p95"].read(None) is None


def test_percentiles_of_many_events_come_within_a_bucket_of_the_truth() -> None:
    width = 0.018
    events = np.random.default_rng(4).lognormal(1.0, 0.8, 200_000)
    index = np.floor(np.log(events) / np.log1p(width)).astype(int)
    counts = np.unique(index, return_counts=True)
    histogram = [(float((1 + width) ** (n + 0.5)), int(count)) for n, count in zip(*counts, strict=True)]
    for percent in (50, 95, 99):
        milliseconds = percentile(histogram, percent)
        assert milliseconds is not None
        assert abs(milliseconds / float(np.percentile(events, percent)) - 1) < width


@pytest.mark.parametrize(("slowest", "known"), [(11.005, True), (11.03, False), (12.0, False)])
def test_a_percentile_in_a_last_bucket_is_known_where_the_slowest_event_fits_the_bucket(
    slowest: float, known: bool
) -> None:
    """A bucket of 10 with a width of 10 % reaches to 11, and one digit in a thousand may be rounded."""
    part = Measurement(histogram=((5.0, 1), (10.0, 9)), latency=Latency(max_ms=slowest, resolution=0.1))
    assert percentile_of(part, 95) == (10.0 if known else None)
