"""cassandra-stress as it is called, and its real output as a measurement; the figures were taken by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tare.databases import Secrets
from tare.deployments import Endpoint
from tare.errors import RunFailed, StudyError
from tare.workloads import Target
from tare.workloads.cassandra_stress.cassandra_stress import CassandraStress
from tare.workloads.cassandra_stress.parameters import CassandraStressParameters

DATA = Path(__file__).parents[3] / "data" / "cassandra-stress"
TARGET = Target("cassandra", Endpoint("10.0.0.2", 9042), Secrets("u", "p"))


def asked(**more: Any) -> CassandraStressParameters:
    return CassandraStressParameters(**{"measure_s": 6.0, **more})


SCHEDULED: dict[str, Any] = {"fixed": 150, "measure_s": 3.0}
"""How the reporter was fed: docs in tests/data/cassandra-stress/README.md."""


def parse(name: str, code: int = 0, **more: Any) -> Any:
    return CassandraStress().parse(asked(**more), DATA / f"{name}.stdout", DATA / f"{name}.stderr", code)


def test_a_mix_is_asked_for_with_its_rate_keys_and_table() -> None:
    own = asked(ratio={"read": 3.0, "write": 1.0}, fixed=200, threads=4, records=8000, consistency="ONE")
    argv = CassandraStress().measure(own, TARGET, "/run/tare").argv
    text = " ".join(argv[argv.index("org.apache.cassandra.stress.Stress") + 1 :])
    assert text.startswith("mixed ratio(read=3,write=1) duration=6s no-warmup cl=ONE -pop dist=uniform(1..8000) ")
    assert "-rate threads=4 fixed=200/s -log interval=1s hdrfile=/run/tare/latency.hdr -col" in text
    assert text.endswith("-node 10.0.0.2 -port native=9042 jmx=9")


def test_the_load_writes_every_row_once_and_is_judged_by_their_number() -> None:
    own = asked(records=8000, compaction="LeveledCompactionStrategy")
    command = CassandraStress().load(own, TARGET, "/run/tare")
    assert {"n=8000", "seq=1..8000", "compaction(strategy=LeveledCompactionStrategy)"} <= set(command.argv)
    assert command.check_output is not None
    command.check_output((DATA / "write.stdout").read_text(), "")
    with pytest.raises(RunFailed, match="8000 operations of 9000"):
        CassandraStress().load(asked(records=9000), TARGET, "/").check_output(
            (DATA / "write.stdout").read_text(), ""
        )  # type: ignore[misc]  # its preparation has a judge


def test_a_load_of_a_few_rows_takes_no_time_that_is_printed_and_is_whole() -> None:
    command = CassandraStress().load(asked(records=8000), TARGET, "/run/tare")
    at_once = (DATA / "write.stdout").read_text().replace("108.7,    8.6,", "108.7,    0.9,")
    assert command.check_output is not None
    command.check_output(at_once, "")


def test_data_is_the_same_whatever_is_measured_on_it() -> None:
    one, other = (CassandraStress().dataset(asked(**more)) for more in ({"command": "read"}, {"threads": 9}))
    assert one == other
    assert CassandraStress().dataset(asked(compaction="LeveledCompactionStrategy")) != one


def test_only_what_is_asked_for_is_warmed_up() -> None:
    assert CassandraStress().warm_up(asked(), TARGET, "/") is None
    command = CassandraStress().warm_up(asked(warmup_s=2.0), TARGET, "/")
    assert command is not None
    assert "duration=2s" in command.argv


def test_no_other_database_is_driven() -> None:
    with pytest.raises(StudyError, match=r"does not support mariadb .it supports cassandra and cassandra-5"):
        CassandraStress().measure(asked(), Target("mariadb", TARGET.endpoint, TARGET.secrets), "/")


@pytest.mark.parametrize(
    "wrong",
    [
        {"fixed": 1, "throttle": 1},
        {"population": "uniform(1..5) -errors ignore"},
        {"population": "uniform(1..)"},
        {"population": "fixed()"},
        {"consistency": "THREE", "replication": 2},
        {"consistency": "ANY", "command": "read"},
        {"measure_s": 1.5},
        {"window_s": 7.0},
        {"ratio": {}},
        {"ratio": {"delete": 1.0}},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        asked(**wrong)


def test_a_mixed_run_is_timed_by_the_time_asked_for() -> None:
    result = parse("mixed", fixed=200)
    assert (result.operations, result.errors, result.duration_s) == (1204, 0, 6.0)
    assert result.throughput_per_s == pytest.approx(1204 / 6)
    assert [round(window.end_s) for window in result.windows] == [1, 2, 3, 4, 5, 6]
    assert {kind: each.operations for kind, each in result.by_operation.items()} == {"read": 914, "write": 290}
    assert result.details == {"target_per_s": 200, "delivered_share": pytest.approx(1204 / 6 / 200)}


def test_a_run_took_the_time_asked_for_and_what_is_surely_beyond_it() -> None:
    """Its clock tells 7.0 s, of which up to a second is before the first operation."""
    assert parse("mixed", measure_s=7.0).throughput_per_s == pytest.approx(1204 / 7)
    assert parse("mixed", measure_s=4.0).throughput_per_s == pytest.approx(1204 / 6)


def test_a_load_that_took_less_than_a_second_is_whole() -> None:
    """Its clock then says what is left of the second in which it began, or nothing at all."""
    judge = CassandraStress().load(asked(records=8000), TARGET, "/").check_output
    assert judge is not None
    for time_s in ("0.3", "0.0"):
        judge((DATA / "write.stdout").read_text().replace("    8.6,  0.20848", f"    {time_s},  0.20848"), "")


def test_windows_of_any_width_lie_on_its_clock() -> None:
    """It began 0.6 s early: its first line is of 1.4 s, and that of the end, of 0.6 s, is none."""
    result = parse("two-seconds", measure_s=8.0, window_s=2.0)
    assert [window.end_s for window in result.windows] == [1.0, 3.0, 5.0, 7.0]
    assert [window.throughput_per_s for window in result.windows] == pytest.approx([262 / 1.4, 442, 612, 1570])


def test_a_window_in_which_no_operation_ended_is_one(tmp_path: Path) -> None:
    """The server was stopped for 3.2 s: of two seconds there is no line. One that was lost is no such second."""
    result = parse("stalled", measure_s=9.0)
    rates = [(window.end_s, window.throughput_per_s) for window in result.windows]
    assert rates[:6] == [(1.0, 270.0), (2.0, 19.0), (3.0, 0.0), (4.0, 0.0), (5.0, 539.0), (6.0, 852.0)]
    assert [window.latency_p95_ms for window in result.windows][1:4] == [81.1, None, None]
    lines = (DATA / "stalled.stdout").read_text().splitlines(keepends=True)
    (tmp_path / "lost.stdout").write_text(
        "".join(line for line in lines if not line.startswith("total,          1740"))
    )
    lost = CassandraStress().parse(asked(measure_s=9.0), tmp_path / "lost.stdout", DATA / "stalled.stderr", 0)
    assert [window.end_s for window in lost.windows] == [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0]


def test_only_a_fixed_rate_sees_stalls() -> None:
    fixed, throttled, closed = (parse("mixed", **rate) for rate in ({"fixed": 200}, {"throttle": 200}, {}))
    assert (fixed.latency.timed_from, fixed.latency.blind_to_stalls) == ("intended-send", False)
    assert (throttled.latency.timed_from, throttled.latency.blind_to_stalls) == ("actual-send", True)
    assert closed.latency.blind_to_stalls
    assert not closed.details


@pytest.mark.parametrize(
    ("name", "code", "more", "message"),
    [
        ("mixed", 0, {"measure_s": 60.0}, "cut short: 7.0 s of 60 s"),
        ("mixed", 1, {}, "ended with 1"),
        ("mixed", 137, {}, "ended by SIGKILL"),
        ("missing", 1, {}, "Data returned was not validated"),
        ("bad-option", 1, {}, "The following were ignored: --frobnicate"),
        ("bad-distribution", 1, {}, r"Invalid parameter list for uniform distribution: \[1\.\.\]"),
        ("nothing-listening", 1, {}, "All host|cut short|NoHostAvailable"),
    ],
)
def test_a_run_that_is_not_whole_fails_in_one_line(
    name: str, code: int, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunFailed, match=message) as error:
        parse(name, code, **more)
    assert "\n" not in error.value.what


def test_errors_are_counted_up_to_the_share_that_is_acceptable() -> None:
    result = parse("errors", measure_s=3.0, max_error_share=0.1)
    assert (result.operations, result.errors, result.by_operation["read"].errors) == (1478, 141, 141)
    assert sum(count for _, count in result.histogram) == 1478
    with pytest.raises(
        RunFailed, match=r"141 errors in 1478 operations: Operation x0 on key.*not validated"
    ) as error:
        parse("errors", measure_s=3.0, max_error_share=0.05)
    assert "population" in (error.value.hint or "")


def test_it_goes_on_after_an_error_only_where_some_are_acceptable() -> None:
    """And tries none again, which would hide it in a latency."""
    patient = CassandraStress().measure(asked(max_error_share=0.1), TARGET, "/").argv
    assert patient[patient.index("-errors") + 1 :][:2] == ("ignore", "retries=0")
    assert "-errors" not in CassandraStress().measure(asked(), TARGET, "/").argv


def test_percentiles_come_from_the_log_of_histograms_where_there_is_one() -> None:
    result = parse("fed", **SCHEDULED)
    reads, writes = result.by_operation["read"], result.by_operation["write"]
    assert (result.operations, reads.operations, writes.operations) == (450, 300, 150)
    assert reads.latency.timed_from == "intended-send"
    assert (reads.latency.min_ms, reads.latency.max_ms) == pytest.approx((0.11, 1.1), rel=1e-3)
    assert (reads.latency.p50_ms, reads.latency.p95_ms) == pytest.approx((0.6, 1.05), rel=1e-3)
    assert reads.latency.mean_ms == pytest.approx(0.605, rel=1e-3)
    assert (reads.service_time.p50_ms, reads.service_time.p95_ms) == pytest.approx((0.5, 0.95), rel=1e-3)
    assert (writes.latency.p50_ms, writes.latency.p99_ms) == pytest.approx((4.0, 2001.0), rel=1e-3)
    assert result.started_at == pytest.approx(1795283440 + 7.999 - result.duration_s)
    assert (result.latency.p50_ms, result.latency.p95_ms) == pytest.approx((0.86, 4.0), rel=0.02)
    assert result.latency.resolution == pytest.approx(1e-3)
    assert sum(count for _, count in result.histogram) == 450
    assert [value for value, _ in result.histogram] == sorted(value for value, _ in result.histogram)


def test_a_figure_that_is_wider_than_its_column_hides_no_line() -> None:
    result = parse("wide", fixed=100, measure_s=2.0)
    assert (result.operations, sum(count for _, count in result.histogram)) == (200, 200)
    assert {kind: each.operations for kind, each in result.by_operation.items()} == {"read": 150, "write": 50}
    assert [window.latency_p95_ms for window in result.windows] == [2000.7]


def test_a_line_that_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    text = (DATA / "wide.stdout").read_text()
    (tmp_path / "wide.stdout").write_text(text.replace("2.0,839.93331", "2.0,x"))
    with pytest.raises(RunFailed, match=r"cannot read .READ, +150,"):
        CassandraStress().parse(asked(measure_s=2.0), tmp_path / "wide.stdout", DATA / "wide.stderr", 0)


def test_a_closed_loop_is_timed_from_the_actual_send() -> None:
    result = parse("fed", measure_s=3.0)
    assert result.by_operation["read"].latency.p50_ms == pytest.approx(0.5, rel=1e-3)
    assert result.by_operation["read"].service_time is None
    assert result.latency.blind_to_stalls


def test_without_a_log_the_printed_table_counts() -> None:
    result = parse("mixed", fixed=200)
    assert result.histogram == ()
    assert result.latency.resolution is None


@pytest.mark.parametrize(
    ("keep", "why"), [(0.9, "damaged|has .* of 450"), (0.5, "damaged|has .* of 450"), (0.0, "has 0 of 450")]
)
def test_a_log_that_is_not_whole_fails_the_run(keep: float, why: str, tmp_path: Path) -> None:
    for name in ("fed.stdout", "fed.stderr"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    log = (DATA / "fed.latency.hdr").read_bytes()
    (tmp_path / "fed.latency.hdr").write_bytes(log[: int(keep * len(log))])
    with pytest.raises(RunFailed, match=why) as error:
        CassandraStress().parse(asked(**SCHEDULED), tmp_path / "fed.stdout", tmp_path / "fed.stderr", 0)
    assert "\n" not in error.value.what
