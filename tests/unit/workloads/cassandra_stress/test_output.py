"""Real output of cassandra-stress 3.11.2, read; figures were taken from the files by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tare.errors import RunFailed
from tare.imports.parsers.cassandra_stress import measurement_of_cassandra_stress
from tare.workloads.cassandra_stress.measurement import Expected, must_be_whole, must_have_done
from tare.workloads.cassandra_stress.output import Printed, read_output

DATA = Path(__file__).parents[3] / "data" / "cassandra-stress"


def text(name: str) -> str:
    return (DATA / f"{name}.stdout").read_text()


def printed(name: str) -> Printed:
    return read_output(text(name), (DATA / f"{name}.stderr").read_text())


def test_totals_and_kinds_of_a_mixed_run() -> None:
    result = printed("mixed")
    assert result.results["op_rate"] == {"total": 172, "READ": 153, "WRITE": 48}
    assert result.results["partitions"] == {"total": 1204, "READ": 914, "WRITE": 290}
    assert result.results["p99_ms"] == {"total": 237.8, "READ": 242.9, "WRITE": 207.5}
    assert (result.rate_per_s, result.seconds, result.ended) == (200, 6, True)
    assert [each.operations for each in result.intervals if each.kind == "total"][-1] == 1204
    assert result.intervals[0].figures["p95_ms"] == 173.4


def test_a_write_run_has_one_kind_and_no_rate() -> None:
    result = printed("write")
    assert result.rate_per_s is None
    assert result.results["op_rate"] == {"total": 928, "WRITE": 1050}
    assert [each.operations for each in result.intervals] == [207, 649, 1231, 2448, 3933, 5362, 7141, 8000]


def test_an_imported_report_is_a_measurement_by_kind_of_operation() -> None:
    measurement = measurement_of_cassandra_stress(text("mixed"), 0.0)
    assert (measurement.operations, measurement.throughput_per_s, measurement.duration_s, measurement.errors) == (
        1204,
        172.0,
        7.0,
        0,
    )
    assert measurement.latency.p95_ms == 150.2
    assert {kind: each.operations for kind, each in measurement.by_operation.items()} == {"read": 914, "write": 290}
    assert measurement.by_operation["write"].latency.mean_ms == 23.3
    assert measurement.latency.timed_from is None  # fixed and throttle are printed alike
    assert measurement_of_cassandra_stress(text("write"), 0.0).latency.timed_from == "actual-send"
    without_settings = text("write")[text("write").index("type ") :]
    assert measurement_of_cassandra_stress(without_settings, 0.0).latency.timed_from is None
    assert len(measurement.windows) == 6


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad-option", "The following were ignored: --frobnicate"),
        ("bad-distribution", "Invalid parameter list for uniform distribution"),
        ("missing", "Data returned was not validated"),
        ("nothing-listening", "cut short"),
    ],
)
def test_a_failure_is_told_in_one_line(name: str, reason: str) -> None:
    with pytest.raises(RunFailed) as error:
        measurement_of_cassandra_stress(text(name), 0.0)
    assert reason in error.value.what
    assert "\n" not in error.value.what


def test_a_program_that_did_not_begin_is_told_by_its_last_words() -> None:
    """As its JVM says where its heap is more than the machine has."""
    result = "Error occurred during initialization of VM\nToo small maximum heap\n\n"
    with pytest.raises(RunFailed, match=r"is missing or cut short: Too small maximum heap$"):
        must_be_whole(read_output("", result), 0.0)


def test_a_report_that_was_cut_is_none() -> None:
    with pytest.raises(RunFailed, match="cut short"):
        measurement_of_cassandra_stress(text("mixed")[:-300], 0.0)


WHOLE = ("mixed", "write", "fed", "wide")


@pytest.mark.parametrize("name", WHOLE)
def test_a_report_that_lost_lines_has_no_figure_changed(name: str) -> None:
    """All after one line, or one alone."""
    lines = text(name).splitlines(keepends=True)
    whole = replace(measurement_of_cassandra_stress(text(name), 0.0), windows=())
    for n in range(len(lines)):
        for left in (lines[:n], lines[:n] + lines[n + 1 :]):
            try:
                measurement = measurement_of_cassandra_stress("".join(left), 0.0)
            except RunFailed:
                continue
            if measurement.latency.timed_from is not None or "OpsPer" not in lines[n]:
                assert replace(measurement, windows=()) == whole, lines[n]


@pytest.mark.parametrize("name", WHOLE)
def test_figures_of_another_locale_are_not_taken_for_others(name: str) -> None:
    """Of a German one 24,8 ms was read as 248 ms, and of a line's 3,2 the mean as 3 and the median as 2."""
    begin = text(name).index("Results:")
    swapped = str.maketrans(".,", ",.")
    results = "\n".join(
        f"{name}:{result.translate(swapped).replace('. ', ', ')}" if mark else name
        for name, mark, result in (line.partition(":") for line in text(name)[begin:].split("\n"))
    )
    with pytest.raises(RunFailed, match=r"cannot read 'Latency mean .* a locale other than English"):
        measurement_of_cassandra_stress(text(name)[:begin] + results, 0.0)
    rows = re.sub(r"(?<=[0-9])[.](?=[0-9])", ",", text(name)[:begin])
    with pytest.raises(RunFailed, match=r"cannot read '(total|READ)"):
        measurement_of_cassandra_stress(rows + text(name)[begin:], 0.0)


def test_several_reports_in_one_are_none() -> None:
    """Without a number of threads cassandra-stress tries several, and prints a report of each."""
    with pytest.raises(RunFailed, match="more than one report"):
        measurement_of_cassandra_stress(text("write") + text("write"), 0.0)


@pytest.mark.parametrize(
    "row", ["total, 1204, 200, 200\n", "total, 1.2.3, 5\n", "READ, 914, 1.2.3\n", "WRITE, 5\n"]
)
def test_a_line_that_was_broken_by_another_is_told(row: str) -> None:
    with pytest.raises(RunFailed, match=r"cannot read .*: is it truncated"):
        measurement_of_cassandra_stress(row + text("mixed"), 0.0)


def test_errors_that_are_no_count_are_not_none() -> None:
    spoilt = re.sub(r"Total errors .*", "Total errors              : NaN", text("mixed"))
    with pytest.raises(RunFailed, match="nan errors"):
        measurement_of_cassandra_stress(spoilt, 0.5)


def test_a_window_without_operations_has_no_percentile() -> None:
    """It prints 0.0 for it, which is no latency."""
    results = measurement_of_cassandra_stress(text("mixed"), 0.0).windows
    assert all(window.latency_p95_ms for window in results)
    assert {(window.errors_per_s, window.reconnects_per_s) for window in results} == {(0.0, None)}
    still = "total, 806, 0, 0, 0, NaN, 0.0, 0.0, 0.0, 0.0, 0.0, 5.5, 0.2, 3, 0, 0, 0, 0, 0\n"
    lines = text("mixed").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if line.startswith("total,           806"))
    windows = measurement_of_cassandra_stress("".join((*lines[: at + 1], still, *lines[at + 1 :])), 0.0).windows
    (stood,) = [window for window in windows if window.throughput_per_s == 0]
    assert (stood.latency_p95_ms, stood.errors_per_s) == (None, None)


def test_a_server_that_answers_nothing_is_the_reason() -> None:
    whole = printed("mixed")
    silent = replace(
        whole,
        results={**whole.results, "errors": dict.fromkeys(whole.results["errors"], 0.0)},
        intervals=tuple(replace(each, operations=0) for each in whole.intervals),
    )
    with pytest.raises(RunFailed, match=r"^the server did not answer in the measure phase: cassandra-stress ended"):
        must_have_done(silent, Expected(seconds=5.0))
