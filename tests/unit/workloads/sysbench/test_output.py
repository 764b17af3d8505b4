"""Real output of sysbench 1.0.20 (Debian's 1.0.20+ds-5 against MariaDB 10.11.19), read and judged.

tests/data/sysbench/README.md says how each file came about. Expected figures were taken from the files by hand, and
percentiles counted off with awk.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import RunFailed
from tare.workloads import Measurement
from tare.workloads.output_text import output_text
from tare.workloads.sysbench.measurement import RESOLUTION, percentile_ms
from tare.workloads.sysbench.output import Bucket, Interval, read_output
from tare.workloads.sysbench.parameters import SysbenchParameters
from tare.workloads.sysbench.sysbench import Sysbench

DATA = Path(__file__).parents[3] / "data" / "sysbench"
GOOD = {"closed": 4, "rate": 3, "read-write": 3, "stalled-closed": 4, "stalled-rate": 4}


def captured(name: str) -> str:
    return (DATA / f"{name}.stdout").read_bytes().decode()


def parse(tmp_path: Path, text: str | bytes, *, code: int = 0, stderr: str = "", **asked: Any) -> Measurement:
    stdout, errors = tmp_path / "client.stdout", tmp_path / "client.stderr"
    stdout.write_bytes(text if isinstance(text, bytes) else text.encode())
    errors.write_text(stderr)
    return Sysbench().parse(SysbenchParameters.model_validate(asked), stdout, errors, code)


def without(text: str, *parts: str) -> str:
    """The text without the lines in which one of the parts stands."""
    return "".join(line for line in text.splitlines(keepends=True) if not any(part in line for part in parts))


def test_a_closed_loop_run(tmp_path: Path) -> None:
    measurement = parse(tmp_path, captured("closed"), measure_s=4)
    assert (measurement.operations, measurement.unit, measurement.duration_s) == (10443, "transactions", 4.0135)
    assert measurement.throughput_per_s == pytest.approx(10443 / 4.0135)
    assert measurement.queries_per_s == pytest.approx(167088 / 4.0135)
    assert (measurement.errors, measurement.reconnects) == (0, 0)
    assert measurement.latency.mean_ms == pytest.approx(64049.32 / 10443)
    assert (measurement.latency.min_ms, measurement.latency.max_ms) == (0.42, 43.66)
    assert (measurement.latency.p50_ms, measurement.latency.p95_ms, measurement.latency.p99_ms) == (
        6.318,
        11.446,
        13.460,
    )
    assert measurement.latency.blind_to_stalls
    assert len(measurement.histogram) == 216
    assert sum(count for _, count in measurement.histogram) == 10443
    assert [window.end_s for window in measurement.windows] == [1, 2, 3, 4]
    first = measurement.windows[0]
    assert (first.throughput_per_s, first.queries_per_s, first.latency_p95_ms) == (2887.36, 46364.44, 9.56)
    assert first.queue_length is None
    assert measurement.details == {
        "reads": 146202,
        "writes": 0,
        "other_queries": 20886,
        "latency_sum_ms": 64049.32,
        "thread_events_mean": 652.6875,
        "thread_events_stddev": 122.54,
        "thread_time_mean_s": 4.0031,
        "thread_time_stddev_s": 0.0,
    }


def test_a_run_at_a_rate(tmp_path: Path) -> None:
    measurement = parse(tmp_path, captured("rate"), measure_s=3, rate=300)
    assert (measurement.operations, measurement.duration_s) == (892, 3.0099)
    assert not measurement.latency.blind_to_stalls
    assert (measurement.latency.p95_ms, measurement.latency.max_ms) == (1.96, 22.58)
    assert [window.queue_length for window in measurement.windows] == [1, 0, 1]


def test_a_run_that_writes(tmp_path: Path) -> None:
    measurement = parse(tmp_path, captured("read-write"), measure_s=3)
    assert measurement.operations == 4222
    assert (measurement.details["reads"], measurement.details["writes"], measurement.details["other_queries"]) == (
        59108,
        16888,
        8444,
    )


def test_every_figure_of_a_window_is_read() -> None:
    assert read_output(captured("deadlocks")).intervals[0] == Interval(
        end_s=1,
        threads=8,
        tps=3877.75,
        qps=23752.57,
        reads_per_s=0.0,
        writes_per_s=15794.87,
        others_per_s=7957.70,
        latency_p95_ms=4.10,
        errors_per_s=196.23,
        reconnects_per_s=0.0,
    )


def test_a_stalled_server_is_invisible_to_a_closed_loop_and_plain_at_a_rate(tmp_path: Path) -> None:
    """The server was stopped for 1 s of 4 s, so that one request in four met it: the true p95 is about 0.8 s."""
    closed = parse(tmp_path, captured("stalled-closed"), measure_s=4).latency
    rate = parse(tmp_path, captured("stalled-rate"), measure_s=4, rate=500).latency
    assert (closed.p99_ms, closed.max_ms, closed.blind_to_stalls) == (0.082, 1003.11, True)
    assert (rate.p50_ms, rate.p95_ms, rate.blind_to_stalls) == (0.23, 802.053, False)


@pytest.mark.parametrize(("name", "seconds"), GOOD.items())
def test_percentiles_are_sysbenchs_own(name: str, seconds: int) -> None:
    printed = read_output(captured(name))
    p95 = percentile_ms(printed.histogram, 95)
    assert p95 is not None
    assert round(p95 - printed.figure("latency_p95_ms"), 2) == 0
    assert sum(bucket.count for bucket in printed.histogram) == printed.count("events")


def test_buckets_are_as_wide_as_we_say() -> None:
    values = [bucket.value_ms for bucket in read_output(captured("closed")).histogram if bucket.value_ms > 3]
    steps = [later / earlier - 1 for earlier, later in pairwise(values)]
    assert min(steps) == pytest.approx(RESOLUTION, abs=3e-4)


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("overload", 1, "sysbench: The event queue is full."),
        ("wrong-password", 1, "error 1045: Access denied for user 'tare'@'127.0.0.1'"),
        ("nothing-listening", 1, r"error 2002: Can't connect to server on '127.0.0.1' \(115\)"),
        ("missing-tables", 1, "MySQL error: 1146 \"Table 'sbtest.sbtest9' doesn't exist\""),
        ("too-many-connections", 1, "error 1040: Too many connections"),
        ("server-killed", 1, "error 2013 .Lost connection to server during query"),
        ("client-killed", -9, "ended by SIGKILL after its report at 2 s"),
        ("client-killed", 137, "ended by SIGKILL after its report at 2 s"),
        ("client-killed", 0, "cut short: it lacks read"),
        ("forced-shutdown", -11, "The --max-time limit has expired"),
        ("no-events", 0, "the server did not answer in the measure phase: no transaction in 2.2575 s"),
        ("deadlocks", 0, "398 errors in 7699 transactions"),
    ],
)
def test_a_failed_run_gives_its_reason_in_one_line(tmp_path: Path, name: str, code: int, reason: str) -> None:
    with pytest.raises(RunFailed, match=reason) as failure:
        parse(tmp_path, captured(name), code=code, measure_s=2)
    assert "\n" not in str(failure.value)
    assert len(failure.value.what) < 350


def test_a_call_that_sysbench_did_not_understand(tmp_path: Path) -> None:
    stderr = (DATA / "bad-option.stderr").read_text()
    with pytest.raises(RunFailed, match=r"ended with 1: invalid option: --no-such=1"):
        parse(tmp_path, captured("bad-option"), code=1, stderr=stderr, measure_s=2)


def test_a_failure_without_a_word_is_still_one(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="ended with 3: it gave no reason"):
        parse(tmp_path, captured("closed"), code=3, measure_s=4)


def test_an_unknown_signal_is_named_by_its_number(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="signal 33"):
        parse(tmp_path, captured("client-killed"), code=-33, measure_s=4)


def test_a_fatal_line_fails_the_run_whatever_the_exit_code(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="something"):
        parse(tmp_path, captured("closed") + "FATAL: something\n", measure_s=4)


def test_as_many_errors_as_the_study_accepts_are_kept_and_shown(tmp_path: Path) -> None:
    measurement = parse(tmp_path, captured("deadlocks"), measure_s=2, max_error_share=0.06)
    assert measurement.errors == 398
    assert measurement.windows[1].errors_per_s == 201.11
    with pytest.raises(RunFailed, match="398 errors"):
        parse(tmp_path, captured("deadlocks"), measure_s=2, max_error_share=0.05)


def test_lost_connections_fail_the_run(tmp_path: Path) -> None:
    text = captured("closed").replace(
        "reconnects:                          0 ", "reconnects:                          3 "
    )
    with pytest.raises(RunFailed, match="3 connections were lost"):
        parse(tmp_path, text, measure_s=4)


def test_the_last_window_may_lose_its_race_with_the_end(tmp_path: Path) -> None:
    measurement = parse(tmp_path, without(captured("closed"), "[ 4s ]"), measure_s=4)
    assert [window.end_s for window in measurement.windows] == [1, 2, 3]


def test_reports_that_stop_early_fail_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="last window ends at 2 s of 4 s"):
        parse(tmp_path, without(captured("closed"), "[ 3s ]", "[ 4s ]"), measure_s=4)


def test_less_time_than_asked_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"cut short: 4.0135 s of 5 s"):
        parse(tmp_path, captured("closed"), measure_s=5)


@pytest.mark.parametrize(
    "line",
    [
        "read:",
        "transactions:",
        "ignored errors:",
        "reconnects:",
        "total time:",
        "events:",
        "avg:",
        "sum:",
        "fairness",
    ],
)
def test_a_report_that_lacks_a_line_fails_the_run(tmp_path: Path, line: str) -> None:
    cut = without(captured("closed"), line) if line != "fairness" else captured("closed").partition("Threads f")[0]
    with pytest.raises(RunFailed, match="it lacks"):
        parse(tmp_path, cut, measure_s=4)


def test_a_lost_bucket_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"contradicts itself: .* events in the histogram, but 10443"):
        parse(tmp_path, without(captured("closed"), "      43.640 |", "       6.318 |"), measure_s=4)


def test_a_report_without_histogram_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="no histogram"):
        parse(tmp_path, without(captured("closed"), " |"), measure_s=4)


def test_figures_that_disagree_fail_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="contradicts itself"):
        parse(
            tmp_path,
            captured("closed").replace("read:                            146202", "read:    1"),
            measure_s=4,
        )
    with pytest.raises(RunFailed, match=r"p95 11.446 ms by the histogram, but 11.9 ms"):
        parse(tmp_path, captured("closed").replace("  11.45\n", "  11.90\n"), measure_s=4)


def test_a_comma_for_a_point_is_not_taken_for_a_figure(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="it lacks"):
        parse(tmp_path, captured("closed").replace("4.0135s", "4,0135s"), measure_s=4)


def test_carriage_returns_and_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    plain = parse(tmp_path, captured("closed"), measure_s=4)
    odd = captured("closed").replace("\n", "\r\n").encode() + b"\xff\xfe\r\n"
    assert parse(tmp_path, odd, measure_s=4) == plain


def test_an_output_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = partial(output_text, tool="sysbench", most_mib=0)
    monkeypatch.setattr("tare.workloads.sysbench.measurement.text_of", limited)
    with pytest.raises(RunFailed, match="larger than"):
        parse(tmp_path, captured("closed"), measure_s=4)


def test_a_percentile_in_the_last_bucket_is_not_known() -> None:
    histogram = [Bucket(1.0, 90), Bucket(100_000.0, 10)]
    assert percentile_ms(histogram, 50) == 1.0
    assert percentile_ms(histogram, 95) is None


@given(st.lists(st.integers(min_value=1, max_value=50), min_size=1, max_size=40), st.integers(1, 100))
def test_a_percentile_is_an_observation_of_that_rank(counts: list[int], percent: int) -> None:
    histogram = [Bucket(float(index + 1), count) for index, count in enumerate(counts)]
    ordered = [bucket.value_ms for bucket in histogram for _ in range(bucket.count)]
    rank = max(int(len(ordered) * percent / 100 + 0.5), 1)
    assert percentile_ms(histogram, percent) == ordered[rank - 1]


@given(st.text(max_size=300))
def test_no_output_makes_the_reader_stumble(text: str) -> None:
    assert read_output(text).missing


def test_an_output_cut_anywhere_is_never_a_result() -> None:
    text = captured("closed")
    last = len(text.rstrip()) + 1
    whole = [length for length in range(last - 2000, len(text) + 1) if not read_output(text[:length]).missing]
    assert whole == list(range(last, len(text) + 1))
