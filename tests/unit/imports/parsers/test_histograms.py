"""Histograms and windows of reports, where the file has them: they add up to the figures that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.analyze.statistics.histogram import percentile
from tare.imports.contents import text_of
from tare.imports.parsers.exact import histogram_of
from tare.imports.parsers.registry import PARSERS
from tare.record.measurement import Measurement

DATA = Path(__file__).parents[3] / "data"


def measured(tool: str, path: str, before: str = "") -> Measurement:
    text = text_of((DATA / path).read_bytes())
    assert text is not None
    (report,) = list(PARSERS[tool].reports(before + text, 1.0))
    assert report.whole is not None, report.failure
    return report.whole


def count_of(histogram: tuple[tuple[float, int], ...]) -> int:
    return sum(count for _, count in histogram)


def test_buckets_of_fio_give_the_percentiles_of_jobs_that_ran_together() -> None:
    """Two jobs with 16,594 and 18,041 reads; no percentiles of one job are those of both."""
    run = measured("fio", "fio/aio.stdout")
    assert count_of(run.histogram) == run.operations == 16594 + 18041
    assert run.latency.p95_ms == percentile(run.histogram, 95)
    assert run.latency.p95_ms == pytest.approx(5.01, abs=0.5)
    assert run.latency.resolution == 1 / 64
    assert run.by_operation["read"].histogram == run.histogram


def test_fio_without_buckets_has_no_histogram() -> None:
    run = measured("fio", "imports/fio/json-mix.txt")
    assert run.histogram == ()
    assert run.latency.resolution is None


def test_buckets_that_lack_requests_are_no_histogram() -> None:
    text = (DATA / "fio" / "aio.stdout").read_text()
    damaged = text.replace('"146432" : 1,', "", 1)
    assert damaged != text
    (report,) = list(PARSERS["fio"].reports(damaged, 1.0))
    assert report.measurement is not None
    assert report.measurement.histogram == ()
    assert report.measurement.latency.p95_ms is None


@pytest.mark.parametrize(
    ("tool", "path"),
    [("pgbench", "imports/pgbench/transactions.log"), ("benchbase", "imports/benchbase/tpcc.raw.csv")],
)
def test_logs_of_operations_have_a_histogram_of_all(tool: str, path: str) -> None:
    run = measured(tool, path)
    assert count_of(run.histogram) == run.operations
    for percent, exact in ((50, run.latency.p50_ms), (95, run.latency.p95_ms), (99, run.latency.p99_ms)):
        assert percentile(run.histogram, percent) == pytest.approx(exact, rel=0.01)
    assert run.windows


def test_latencies_are_rounded_to_three_digits() -> None:
    assert histogram_of([0.0012345, 0.0012301, 2.0]) == ((1.23, 2), (2000.0, 1))


def statuses(*lines: tuple[int, float]) -> str:
    """Lines of `-s`: second and rate since the line before."""
    return "".join(
        f"2026-11-21 14:45:{second:02d}:000 {second} sec: {1000 * second} operations; {rate} current ops/sec; "
        "[READ: Count=9]\n"
        for second, rate in lines
    )


def test_status_lines_of_ycsb_are_windows() -> None:
    """The line at 0 s is at the very beginning, and the last interval is short."""
    lines = statuses((0, 0), (10, 990.5), (20, 1010.25), (30, 400), (33, 900))
    run = measured("ycsb", "ycsb/hdr.stdout", before=lines)
    assert [(window.end_s, window.throughput_per_s) for window in run.windows] == [
        (10.0, 990.5), (20.0, 1010.25), (30.0, 400.0),
    ]  # fmt: skip


def test_two_status_lines_of_ycsb_say_no_interval() -> None:
    assert measured("ycsb", "ycsb/hdr.stdout", before=statuses((0, 5), (10, 5))).windows == ()


@pytest.mark.parametrize(
    ("tool", "path", "windows"),
    [
        ("sysbench", "imports/sysbench/cpu.txt", 3),
        ("sysbench", "sysbench/read-write.stdout", 3),
        ("cassandra-stress", "cassandra-stress/mixed.stdout", 6),
        ("pgbench", "imports/pgbench/progress.txt", 4),
        ("pgbench", "imports/pgbench/intervals.log", 4),
        ("memtier", "imports/memtier/plain.json", 3),
    ],
)
def test_interval_lines_are_windows(tool: str, path: str, windows: int) -> None:
    run = measured(tool, path)
    assert len(run.windows) == windows
    assert all((window.throughput_per_s or 0) > 0 for window in run.windows)
