"""The log of histograms of cassandra-stress, read as HdrHistogram's own library reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.workloads.cassandra_stress.histograms import TimedFrom, read_histograms

DATA = Path(__file__).parents[3] / "data" / "cassandra-stress"
_MS = 1e6


@pytest.mark.parametrize("log", ["fed.latency.hdr", "wide.latency.hdr"])
@pytest.mark.parametrize("timed_from", ["intended-send", "actual-send"])
def test_buckets_percentiles_and_means_are_those_of_the_library(log: str, timed_from: TimedFrom) -> None:
    histograms = read_histograms(DATA / log, timed_from)
    assert histograms is not None
    assert set(histograms.of) == {"READ", "WRITE", "total"}
    for kind, library in histograms.of.items():
        result = histograms.latency(kind)
        assert result is not None
        assert result.mean_ms == library.get_mean_value() / _MS
        percentiles = [library.get_value_at_percentile(percent) / _MS for percent in (50, 95, 99)]
        assert [result.p50_ms, result.p95_ms, result.p99_ms] == percentiles
        steps = [
            (step.value_iterated_to / _MS, step.count_at_value_iterated_to)
            for step in library.get_recorded_iterator()
        ]
        assert list(histograms.buckets(kind)) == steps


def test_a_kind_of_which_nothing_was_logged_has_no_latency() -> None:
    histograms = read_histograms(DATA / "fed.latency.hdr", "actual-send")
    assert histograms is not None
    assert histograms.latency("COUNTER_WRITE") is None
    assert histograms.buckets("COUNTER_WRITE") == ()
