"""Real output of cassandra-stress 3.11.2, read; figures were taken from the files by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.errors import RunFailed
from tare.imports.cassandra_stress import measurement_of_cassandra_stress
from tare.workloads.cassandra_stress_output import Printed, read_output

DATA = Path(__file__).parents[2] / "data" / "cassandra-stress"


def text(name: str) -> str:
    return (DATA / f"{name}.stdout").read_text()


def printed(name: str) -> Printed:
    return read_output(text(name), (DATA / f"{name}.stderr").read_text())


def test_totals_and_kinds_of_a_mixed_run() -> None:
    found = printed("mixed")
    assert found.results["op_rate"] == {"total": 172, "READ": 153, "WRITE": 48}
    assert found.results["partitions"] == {"total": 1204, "READ": 914, "WRITE": 290}
    assert found.results["p99_ms"] == {"total": 237.8, "READ": 242.9, "WRITE": 207.5}
    assert (found.rate_per_s, found.seconds, found.ended) == (200, 6, True)
    assert [each.operations for each in found.intervals if each.kind == "total"][-1] == 1204
    assert found.intervals[0].figures["p95_ms"] == 173.4


def test_a_write_run_has_one_kind_and_no_rate() -> None:
    found = printed("write")
    assert found.rate_per_s is None
    assert found.results["op_rate"] == {"total": 928, "WRITE": 1050}
    assert [each.operations for each in found.intervals] == [207, 649, 1231, 2448, 3933, 5362, 7141, 8000]


def test_an_imported_report_is_a_measurement_by_kind_of_operation() -> None:
    told = measurement_of_cassandra_stress(text("mixed"), 0.0)
    assert (told.operations, told.throughput_per_s, told.duration_s, told.errors) == (1204, 172.0, 7.0, 0)
    assert told.latency.p95_ms == 150.2
    assert {kind: each.operations for kind, each in told.by_operation.items()} == {"read": 914, "write": 290}
    assert told.by_operation["write"].latency.mean_ms == 23.3
    assert told.latency.timed_from is None  # fixed and throttle are printed alike
    assert measurement_of_cassandra_stress(text("write"), 0.0).latency.timed_from == "actual-send"
    assert len(told.windows) == 6


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad-option", "The following were ignored: --frobnicate"),
        ("missing", "Data returned was not validated"),
        ("nothing-listening", "cut short"),
    ],
)
def test_a_failure_is_told_in_one_line(name: str, reason: str) -> None:
    with pytest.raises(RunFailed) as error:
        measurement_of_cassandra_stress(text(name), 0.0)
    assert reason in error.value.what
    assert "\n" not in error.value.what


def test_a_report_that_was_cut_is_none() -> None:
    with pytest.raises(RunFailed, match="cut short"):
        measurement_of_cassandra_stress(text("mixed")[:-300], 0.0)
