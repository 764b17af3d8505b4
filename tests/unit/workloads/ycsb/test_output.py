"""Real output of YCSB 0.17.0, read and judged. tests/data/ycsb/README.md says how it came about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tare.errors import RunFailed
from tare.workloads import Measurement
from tare.workloads.merged import percentile
from tare.workloads.ycsb.measurement import Expected, measurement
from tare.workloads.ycsb.output import Printed, read_output

DATA = Path(__file__).parents[3] / "data" / "ycsb"
WHOLE = (
    "both", "hdr", "hdr-and-histogram", "hdr-and-raw", "histogram", "intended", "load", "raw", "timeseries",
)  # fmt: skip


def printed(name: str) -> Printed:
    return read_output((DATA / f"{name}.stdout").read_text(), (DATA / f"{name}.stderr").read_text())


def changed(name: str, old: str, new: str) -> Printed:
    text = (DATA / f"{name}.stdout").read_text()
    assert old in text
    return read_output(text.replace(old, new), (DATA / f"{name}.stderr").read_text())


def judged(name: str, asked: Expected | None = None) -> Measurement:
    return measurement(printed(name), asked or Expected())


@pytest.mark.parametrize("name", WHOLE)
def test_every_line_is_known(name: str) -> None:
    assert printed(name).others == ()


def test_intended_and_actual_latency_are_told_apart() -> None:
    result = judged("both", Expected(target_per_s=1000.0, window_s=1.0))
    read = result.by_operation["read"]
    assert (read.operations, read.errors, dict(read.answers)) == (1467, 0, {"OK": 1467})
    assert read.latency.timed_from == "intended-send"
    assert read.service_time is not None
    assert read.service_time.timed_from == "actual-send"
    assert read.service_time.mean_ms == pytest.approx(3.4771642808452623e-3)
    assert read.latency.mean_ms is not None
    assert read.latency.mean_ms > 1.0
    assert not read.latency.blind_to_stalls
    assert read.service_time.blind_to_stalls


def test_without_a_target_the_intended_send_is_the_actual_one_and_the_loop_is_closed() -> None:
    assert judged("both").by_operation["read"].latency.blind_to_stalls


def test_with_intended_alone_the_record_says_so() -> None:
    asked = Expected(target_per_s=1000.0, interval="intended")
    assert judged("intended", asked).latency.timed_from == "intended-send"
    assert judged("intended").latency.timed_from == "actual-send"


def test_the_histogram_of_all_kinds_has_every_operation_and_its_percentiles() -> None:
    actual = judged("both")
    assert sum(count for _, count in actual.histogram) == actual.operations == 3000
    assert [value for value, _ in actual.histogram] == sorted(value for value, _ in actual.histogram)
    for kind, section in (("read", "Intended-READ"), ("update", "Intended-UPDATE")):
        latency = actual.by_operation[kind].latency
        result = printed("both").figure(section, "99thPercentileLatency(us)")
        assert result is not None
        assert latency.p99_ms == pytest.approx(result / 1000)


def test_the_mean_of_all_kinds_is_weighted() -> None:
    result = judged("hdr")
    parts = [(each.done, each.latency.mean_ms) for each in result.by_operation.values()]
    weighted = sum(n * mean for n, mean in parts if mean is not None) / 20000
    assert result.latency.mean_ms == pytest.approx(weighted)
    assert result.latency.p99_ms is None  # two kinds, no histogram
    assert result.by_operation["read"].latency.p50_ms == 0.0
    assert result.details["max_threads"] == 4


def test_a_read_modify_write_is_one_operation_and_its_parts_are_told() -> None:
    result = judged("histogram")
    assert result.operations == 2000
    counts = {kind: each.operations for kind, each in result.by_operation.items()}
    assert counts == {"read": 2000, "update": 993, "read-modify-write": 993}
    assert printed("histogram").sections["READ"].overflow == 1
    assert result.by_operation["read"].latency.resolution is None  # buckets of a millisecond resolve nothing


def test_a_time_series_has_means_and_no_percentiles() -> None:
    result = judged("timeseries", Expected(target_per_s=1000.0))
    assert result.by_operation["read"].latency.p95_ms is None
    assert [at for at, _ in printed("timeseries").sections["READ"].buckets] == [0, 1000, 2000]


def test_counts_that_several_threads_of_a_time_series_lost_are_those_of_return_codes() -> None:
    """8 threads did 600,000: [READ] tells 599,695, and [READ-MODIFY-WRITE] and its intended send differ."""
    result = judged("timeseries-threads", Expected(operations=600_000, interval="both"))
    counts = {kind: each.operations for kind, each in result.by_operation.items()}
    assert counts == {"read": 600_000, "update": 299_699, "read-modify-write": 296_690}
    with pytest.raises(RunFailed, match="cut short"):
        measurement(changed("timeseries-threads", "Return=OK, 600000", "Return=OK, 500000"), Expected())


def test_a_jvm_whose_handler_of_exceptions_fails_too_has_met_one() -> None:
    text = 'Exception: java.lang.OutOfMemoryError thrown from the UncaughtExceptionHandler in thread "Thread-2"\n'
    with pytest.raises(RunFailed, match=r"met an exception: .*OutOfMemoryError"):
        measurement(read_output((DATA / "both.stdout").read_text(), text), Expected())


def test_raw_values_are_all_read() -> None:
    assert len(printed("raw").raw["READ"]) == 20 == judged("raw").operations
    assert judged("raw").latency.max_ms == 0.296
    assert len(printed("hdr-and-raw").raw["RawREAD"]) == 20 == judged("hdr-and-raw").operations


def test_windows_are_whole_seconds() -> None:
    result = judged("both", Expected(window_s=1.0))
    assert [(window.end_s, window.throughput_per_s) for window in result.windows] == [
        (1.0, 689.42), (2.0, 1001.01), (3.0, 1000.0),
    ]  # fmt: skip


def test_a_load_phase_counts_inserts() -> None:
    result = judged("load", Expected(operations=1000))
    assert result.by_operation["insert"].operations == 1000
    with pytest.raises(RunFailed, match="did 1000 operations of 1001"):
        judged("load", Expected(operations=1001))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad-distribution", 'site.ycsb.WorkloadException: Unknown request distribution "wrong"'),
        ("bad-number", 'java.lang.NumberFormatException: For input string: "many"'),
        ("bad-type", "unknown measurementtype=wrong"),
        ("missing-file", "Unable to open the properties file /no/such/file"),
        ("no-workload", "Missing property: workload"),
        ("unknown-db", "java.lang.ClassNotFoundException: no.such.Db"),
        ("unknown-option", "Unknown option --frobnicate"),
        ("unknown-workload", "java.lang.ClassNotFoundException: no.such.Workload"),
    ],
)
def test_a_run_that_failed_says_why_in_one_line_whatever_its_exit_code(name: str, reason: str) -> None:
    with pytest.raises(RunFailed) as error:
        judged(name)
    assert reason in error.value.what
    assert "\n" not in error.value.what


def test_reads_that_find_nothing_fail_the_run_and_are_counted() -> None:
    text = (DATA / "both.stdout").read_text()
    failed = [
        f"[{send}READ-FAILED], {figure}\n"
        for send in ("", "Intended-")
        for figure in (
            "Operations, 90", "AverageLatency(us), 1.0", "MinLatency(us), 1", "MaxLatency(us), 1",
            "95thPercentileLatency(us), 1", "99thPercentileLatency(us), 1", "1, 90.0",
        )
    ]  # fmt: skip
    result = text.replace("997.3404255319149", str(3090 / 3.008))
    result = result.replace("[READ], Return=OK, 1467\n", "[READ], Return=OK, 1467\n[READ], Return=NOT_FOUND, 90\n")
    spoilt = read_output(result + "".join(failed))
    with pytest.raises(RunFailed, match=r"90 of 3090 operations did not succeed \(90 READ NOT_FOUND\)"):
        measurement(spoilt, Expected())
    kept = measurement(spoilt, Expected(max_error_share=0.05))
    assert (kept.errors, kept.operations) == (90, 3090)
    assert kept.by_operation["read"].answers == {"OK": 1467, "NOT_FOUND": 90}


def verified(answers: str) -> Printed:
    """`both` as with `dataintegrity`, where every read is one of [VERIFY] too, not timed from its intended send."""
    text = (DATA / "both.stdout").read_text()
    lines = [line for line in text.splitlines(keepends=True) if line.startswith("[READ], ")]
    reads = "".join(lines).replace("[READ]", "[VERIFY]")
    return read_output(text + reads.replace("[VERIFY], Return=OK, 1467\n", answers))


def test_reads_that_find_other_data_than_was_written_fail_the_run_however_many_errors_it_may_have() -> None:
    assert measurement(verified("[VERIFY], Return=OK, 1467\n"), Expected()) == measurement(
        read_output((DATA / "both.stdout").read_text()), Expected()
    )
    wrong = verified("[VERIFY], Return=OK, 1460\n[VERIFY], Return=UNEXPECTED_STATE, 7\n")
    with pytest.raises(RunFailed, match="7 of 1467 reads returned other data than was written"):
        measurement(wrong, Expected(max_error_share=0.5))
    with pytest.raises(RunFailed, match="3 of 1467 reads returned other data"):
        measurement(verified("[VERIFY], Return=OK, 1464\n[VERIFY], Return=ERROR, 3\n"), Expected())


def test_a_histogram_lacks_percentiles_beyond_its_last_bucket_and_is_whole() -> None:
    """YCSB prints them where the share of operations within its buckets reaches them: of 2,000 reads here 1,970."""
    text = (DATA / "histogram.stdout").read_text()
    slow = text.replace("[READ], 0, 1999\n", "[READ], 0, 1970\n").replace("[READ], >5, 1\n", "[READ], >5, 30\n")
    with pytest.raises(RunFailed, match="cut short: 99thPercentile"):
        measurement(read_output(text.replace("[READ], 99thPercentileLatency(us), 0\n", "")), Expected())
    result = measurement(read_output(slow.replace("[READ], 99thPercentileLatency(us), 0\n", "")), Expected())
    assert (result.by_operation["read"].latency.p95_ms, result.by_operation["read"].latency.p99_ms) == (0.0, None)


def test_an_insert_kept_for_its_batch_is_no_failure() -> None:
    spoilt = changed(
        "load", "[INSERT], Return=OK, 1000", "[INSERT], Return=OK, 10\n[INSERT], Return=BATCHED_OK, 990"
    )
    assert measurement(spoilt, Expected(operations=1000)).errors == 0


def test_under_delivery_is_kept_for_the_rules_of_validity() -> None:
    result = judged("both", Expected(target_per_s=2000.0))
    assert result.details["delivered_share"] == pytest.approx(0.49867, abs=1e-5)


def test_a_run_that_ended_early_is_none() -> None:
    with pytest.raises(RunFailed, match=r"cut short: 3\.008 s of 10 s"):
        judged("both", Expected(seconds=10.0))


def test_a_report_that_was_cut_gives_no_figures() -> None:
    text = (DATA / "hdr.stdout").read_text()
    with pytest.raises(RunFailed, match="missing or cut short"):
        measurement(read_output(text[:40]), Expected())
    with pytest.raises(RunFailed, match="YCSB reports no operation: the server did not answer"):
        measurement(read_output(text[: text.index("[READ]")]), Expected())


def figures(measurement: Measurement) -> Measurement:
    """Without what status lines and the JVM tell beside them."""
    return replace(measurement, windows=(), details={}, started_at=None)


@pytest.mark.parametrize("name", WHOLE)
def test_no_line_before_the_last_is_the_end_of_a_report(name: str) -> None:
    """A cut in sections of the connections' end alone changes no figure of an operation."""
    asked = Expected(interval="both") if name in {"both", "timeseries"} else Expected()
    lines = (DATA / f"{name}.stdout").read_text().splitlines(keepends=True)
    whole = measurement(read_output("".join(lines)), asked)
    for end in range(len(lines)):
        try:
            result = measurement(read_output("".join(lines[:end])), asked)
        except RunFailed:
            continue
        assert figures(result) == figures(whole), lines[end]


@pytest.mark.parametrize("name", WHOLE)
def test_a_report_that_lost_a_line_has_no_figure_of_operations_changed(name: str) -> None:
    lines = (DATA / f"{name}.stdout").read_text().splitlines(keepends=True)
    whole = measurement(read_output("".join(lines)), Expected())
    for lost in range(len(lines)):
        try:
            result = measurement(read_output("".join(lines[:lost] + lines[lost + 1 :])), Expected())
        except RunFailed:
            continue
        assert figures(result) == figures(whole), lines[lost]


def test_it_began_where_its_status_lines_say_to_a_few_milliseconds() -> None:
    """By lines of 0, 1, 2 and 2 s; the last one tells of 2.5 s as of 2, the first of 0.19 s as of 0."""
    text = "".join((DATA / f"timeseries.{stream}").read_text() for stream in ("stderr", "stdout"))
    result = measurement(read_output(text), Expected(interval="both"))
    began = datetime(2026, 11, 21, 14, 45, 59, 161000, tzinfo=UTC).timestamp()
    assert result.started_at == pytest.approx(began, abs=0.001)
    silent = "".join(line for line in text.splitlines(keepends=True) if " sec: " not in line)
    assert measurement(read_output(silent), Expected(interval="both")).started_at is None


def test_two_reports_in_one_are_none() -> None:
    """A load and its run in one file: inserts are not of the run's time, and the later figure is not of both."""
    texts = [(DATA / f"{name}.stdout").read_text() for name in ("load", "both")]
    with pytest.raises(RunFailed, match=r"two reports: \[OVERALL\], RunTime\(ms\) occurs twice"):
        measurement(read_output("".join(texts)), Expected())
    assert measurement(read_output(texts[1], texts[1]), Expected()) == measurement(
        read_output(texts[1]), Expected()
    )


@pytest.mark.parametrize("count", ["NaN", "Infinity", "1e999", "-3", "0.5"])
def test_a_count_that_is_none_is_told(count: str) -> None:
    with pytest.raises(RunFailed, match=r"operations in \[READ\]"):
        measurement(changed("both", "[READ], Operations, 1467", f"[READ], Operations, {count}"), Expected())
    with pytest.raises(RunFailed, match="return codes of 1467 READ"):
        measurement(changed("both", "Return=OK, 1467", "Return=OK, Infinity"), Expected())
    with pytest.raises(RunFailed, match="ran for inf ms"):
        measurement(changed("both", "RunTime(ms), 3008", "RunTime(ms), Infinity"), Expected())
    with pytest.raises(RunFailed, match="histogram of"):
        measurement(changed("both", "[READ], 18, 1.0", "[READ], \N{SUPERSCRIPT TWO}, 1.0"), Expected())


def test_what_ycsb_does_not_tell_is_not_known() -> None:
    result = judged("both", Expected(window_s=1.0))
    assert result.reconnects is None
    assert {window.errors_per_s for window in result.windows} == {None}


def test_a_line_that_does_not_end_is_not_taken() -> None:
    assert read_output("[READ], Operations, 149").sections == {}


def test_percentiles_are_those_of_hdrhistogram() -> None:
    histogram = [(1.0, 50), (2.0, 45), (3.0, 4), (9.0, 1)]
    assert [percentile(histogram, p) for p in (50, 50.6, 95, 95.6, 99, 100)] == [1.0, 2.0, 2.0, 3.0, 3.0, 9.0]
    assert percentile([], 50) is None


@pytest.mark.parametrize("text", ["[", "[a: ", "a", "[a: 1", "count: "])
def test_a_long_line_is_read_in_the_time_of_its_length(text: str) -> None:
    """Found by attack: of 40 KB it took 9 s, and of twice the length four times as long."""
    line = "2024-01-01 00:00:00:000 1 sec: 1 operations; " + text * (1_000_000 // len(text)) + "\n"
    assert [status.kinds for status in read_output(line).statuses] == [{}]
