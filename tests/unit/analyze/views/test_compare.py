"""Where a real tool's figures must lie, given what the counters did and how well its moments are known."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from tests.unit.analyze.views.traces import MIB, S, trace

from tare.analyze.views import VIEWS
from tare.analyze.views.compare import OBSERVED, Comparison, compare
from tare.analyze.views.model import Measure
from tare.store.trace import Trace

MS = 1_000_000


def row(
    tool: str,
    quantity: str,
    values: list[float],
    *,
    subject: str = "db",
    begin_s: float = 0.5,
    within: int = 5 * MS,
    gauge: bool = False,
) -> pl.DataFrame:
    """A tool's samples, a second each from `begin_s`."""
    ends = [round((begin_s + n + 1) * S) for n in range(len(values))]
    return pl.DataFrame(
        [
            (tool, quantity, subject, end if gauge else end - S, end, value, within)
            for end, value in zip(ends, values, strict=True)
        ],
        schema=OBSERVED,
        orient="row",
    )


def one(observed: pl.DataFrame, of: Trace | None = None) -> Comparison:
    (row,) = compare(trace() if of is None else of, observed)
    return row


def test_a_tool_that_says_what_the_counters_say_agrees() -> None:
    comparison = one(row("docker-stats", "cpu_percent", [60.0, 60.0]))
    assert comparison.agrees
    assert (comparison.samples, comparison.real, comparison.view) == (2, 60.0, 60.0)
    assert comparison.difference == 0.0


def test_a_reading_without_a_time_is_none() -> None:
    whole = trace(seconds=6)
    late = pl.col("usage_t0_ns") > S
    group = whole.tables["cgroup"].with_columns(usage_t0_ns=pl.when(late).then("usage_t0_ns"))
    damaged = replace(whole, tables={**whole.tables, "cgroup": group})
    observed = row("docker-stats", "cpu_percent", [60.0] * 4, begin_s=0.5)
    assert one(observed, whole).samples == 4
    assert one(observed, damaged).samples == 2


@pytest.mark.parametrize("off", [0.9, 1.1])
def test_a_tool_that_is_a_tenth_off_does_not(off: float) -> None:
    # Half a second between the trace's readings bounds each end's moment to so much of 3 s: 5 % in all would pass.
    of = trace(seconds=30)
    comparison = one(row("docker-stats", "cpu_percent", [60.0 * off] * 28), of)
    assert not comparison.agrees, comparison


def test_what_a_tool_may_be_off_shrinks_with_the_window() -> None:
    short = one(row("docker-stats", "cpu_percent", [60.0] * 2), trace(seconds=30))
    long = one(row("docker-stats", "cpu_percent", [60.0] * 28), trace(seconds=30))
    assert long.high - long.low < (short.high - short.low) / 5


def test_samples_that_meet_as_far_as_their_moments_are_known_are_one_stretch() -> None:
    # A clock that is read twice never says the same: ends and begins of neighbours are some microseconds apart.
    meeting = row("docker-stats", "cpu_percent", [60.0] * 28)
    jitter = pl.Series([(n % 2) * 40_000 for n in range(28)])
    apart = meeting.with_columns(pl.col("from_ns") + jitter)
    joined, jittered = (one(each, trace(seconds=30)) for each in (meeting, apart))
    assert jittered.high - jittered.low == pytest.approx(joined.high - joined.low, rel=0.01)
    # A sample that is missing parts two stretches, each as uncertain as if the other were not.
    missing = one(meeting.filter(pl.Series([n != 14 for n in range(28)])), trace(seconds=30))
    assert missing.high - missing.low > 1.5 * (joined.high - joined.low)


def test_samples_that_the_trace_does_not_cover_are_left_out() -> None:
    assert one(row("docker-stats", "cpu_percent", [60.0, 60.0, 99.0, 99.0, 99.0])).samples == 3
    assert compare(trace(), row("docker-stats", "cpu_percent", [60.0], begin_s=60.0)) == ()


def test_steal_is_no_part_of_docker_s_denominator_and_one_of_mpstat_s() -> None:
    stolen = trace(seconds=30, steal=20)
    assert one(row("docker-stats", "cpu_percent", [75.0] * 28), stolen).view == pytest.approx(75.0)
    assert one(row("mpstat", "usr", [30.0] * 28, subject="all"), stolen).view == pytest.approx(30.0)


def test_gauges_are_compared_at_their_moment() -> None:
    right = one(row("docker-stats", "memory_bytes", [80.0 * MIB] * 2, gauge=True))
    assert right.agrees
    assert right.view == 80 * MIB
    assert not one(row("docker-stats", "memory_bytes", [100.0 * MIB] * 2, gauge=True)).agrees


LAG = 2 * 64 * 4096 * trace().cpus
"""Both the tool and the trace may have read a memory.stat that was not added up yet: 64 pages for each CPU."""


def moving(levels_mib: list[float]) -> Trace:
    """A container without page cache whose memory was at these levels, a reading each half second."""
    whole = trace(seconds=(len(levels_mib) - 1) // 2)
    levels = pl.Series([round(level * MIB) for level in levels_mib])
    cgroup = whole.tables["cgroup"].with_columns(memory_bytes=levels, inactive_file_bytes=0)
    return Trace(whole.header, whole.quanta, True, {**whole.tables, "cgroup": cgroup})


def test_a_share_of_the_limit_lags_as_its_memory_does_and_pages_are_the_machine_s() -> None:
    said_percent = row("docker-stats", "memory_percent", [40.0] * 2, gauge=True)
    whole = trace()
    small = one(said_percent, whole)
    assert (small.low, small.high) == pytest.approx((40 - 0.005 - LAG / 2 / MIB, 40 + 0.005 + LAG / 2 / MIB))
    large_pages = Trace({**whole.header, "page_bytes": 65536}, whole.quanta, True, whole.tables)
    assert one(said_percent, large_pages).high - 40 == pytest.approx(0.005 + 16 * LAG / 2 / MIB)


def test_what_moves_in_pages_moves_by_no_less_than_one_of_the_machine_s() -> None:
    whole = trace()
    large = Trace({**whole.header, "page_bytes": 65536}, whole.quanta, True, whole.tables)
    of_memory = [
        quantity for view in VIEWS.values() for quantity in view.quantities
        if quantity.measure in {Measure.CONTAINER_MEMORY, Measure.PROCESS_MEMORY} and quantity.paged > 0
    ]  # fmt: skip
    assert {quantity.unit for quantity in of_memory} == {"B", "KiB"}
    for quantity in of_memory:
        pages = {"B": (4096, 65536), "KiB": (4, 64)}[quantity.unit]
        assert (quantity.resolution(whole, 1.0), quantity.resolution(large, 1.0)) == pages


def test_a_level_that_rises_is_between_its_readings_and_a_tool_beyond_them_is_caught() -> None:
    # 1 MiB from reading to reading: at 2 s it is 104, and with 5 ms to each side the trace knows 103 to 105.
    rising = moving([100.0 + n for n in range(13)])
    comparison = one(row("docker-stats", "memory_bytes", [104.0 * MIB], begin_s=1.0, gauge=True), rising)
    assert (comparison.low, comparison.high) == (103 * MIB - 2048 - LAG, 105 * MIB + 2048 + LAG)
    beyond = 105.1 * MIB + LAG
    assert not one(row("docker-stats", "memory_bytes", [beyond], begin_s=1.0, gauge=True), rising).agrees


def test_one_step_of_a_level_widens_nothing() -> None:
    stepped = moving([100.0] * 6 + [180.0] * 7)
    comparison = one(row("docker-stats", "memory_bytes", [180.0 * MIB] * 2, begin_s=3.5, gauge=True), stepped)
    assert (comparison.low, comparison.high) == (180 * MIB - 2048 - LAG, 180 * MIB + 2048 + LAG)


def test_a_level_that_comes_and_goes_between_readings_may_be_beyond_them_by_as_much_as_they_are() -> None:
    # Eleven readings have two neighbours: five peaks stand 8 MiB above theirs, the other six not above.
    jumping = moving([100.0, 100.0, 108.0] + [100.0, 108.0] * 4 + [100.0, 100.0])
    excess = [8.0] * 5 + [0.0] * 6
    mean = sum(excess) / 11
    spread = (sum((each - mean) ** 2 for each in excess) / 11) ** 0.5
    comparison = one(row("docker-stats", "memory_bytes", [107.0 * MIB] * 4, gauge=True), jumping)
    assert comparison.high == pytest.approx(108 * MIB + 2048 + LAG + (mean + 3 * spread / 4**0.5) * MIB)
    assert comparison.agrees
    assert not one(row("docker-stats", "memory_bytes", [120.0 * MIB] * 4, gauge=True), jumping).agrees


def test_how_far_a_level_may_be_beyond_its_readings_shrinks_with_the_samples() -> None:
    jumping = moving([100.0, 108.0] * 30 + [100.0])
    few, many = (one(row("docker-stats", "memory_bytes", [104.0 * MIB] * n, gauge=True), jumping) for n in (2, 28))
    assert many.high < few.high
    # What the tool left out of its memory, or counted twice, is not hidden by a level that moves.
    assert not one(row("docker-stats", "memory_bytes", [90.0 * MIB] * 28, gauge=True), jumping).agrees


def test_one_sample_of_a_level_may_have_met_what_no_reading_did_and_two_may_not() -> None:
    steady = moving([100.0] * 29)
    slack_mib = (2048 + LAG) / MIB

    def agrees(*levels_mib: float) -> bool:
        comparison = one(
            row("docker-stats", "memory_bytes", [each * MIB for each in levels_mib], gauge=True), steady
        )
        assert comparison.real == pytest.approx(sum(levels_mib) / len(levels_mib) * MIB)
        return comparison.agrees

    assert agrees(100.0, 40.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0)
    assert agrees(100.0, 100.0, 100.0, 180.0)
    assert not agrees(100.0, 180.0, 100.0)
    assert not agrees(100.0, 100.0, 40.0, 100.0, 40.0, 100.0, 100.0, 100.0)
    # Off by little in all samples: the other seven of eight say so.
    assert agrees(*[100 + 0.99 * slack_mib] * 8)
    assert not agrees(*[100 + 1.01 * slack_mib] * 8)
    assert not agrees(*[100 - 1.01 * slack_mib] * 8)


def test_samples_that_overlap_are_each_held_against_their_own_stretch() -> None:
    # rate() over 5 s, told each second: 0.6 of a CPU throughout, and one answer that is a tenth off.
    at = [round((begin + 0.5) * S) for begin in range(24)]
    rows = [("cadvisor", "cpu_cores", "db", begin, begin + 5 * S, 0.6, MS) for begin in at]
    steady = one(pl.DataFrame(rows, schema=OBSERVED, orient="row"), trace(seconds=30))
    assert (steady.samples, steady.agrees) == (24, True)
    assert steady.view == pytest.approx(0.6)
    off = [(*row[:5], 0.75, MS) for row in rows]
    assert not one(pl.DataFrame(off, schema=OBSERVED, orient="row"), trace(seconds=30)).agrees


def test_totals_are_compared_by_what_they_grew() -> None:
    # The container's interface received before the trace began; what counts is 2 KiB in a second, two times.
    grew = row("docker-stats", "network_rx_bytes", [50_000.0, 52_048.0, 54_096.0], gauge=True)
    assert (one(grew).real, one(grew).view, one(grew).agrees) == (4096.0, 4096.0, True)
    stood = row("docker-stats", "network_rx_bytes", [50_000.0] * 3, gauge=True)
    assert not one(stood).agrees


def test_zero_bytes_agree_with_an_empty_file_and_not_with_a_full_one() -> None:
    zero = row("docker-stats", "block_written_bytes", [0.0, 0.0, 0.0], gauge=True)
    assert one(zero).agrees
    assert not one(zero, trace(empty_io=False)).agrees


def test_a_mean_time_is_weighted_with_the_requests_it_is_the_mean_of() -> None:
    waits = row("iostat", "write_await", [2.0, 0.0], subject="vda")
    rates = row("iostat", "writes", [100.0, 0.0], subject="vda")
    by_quantity = {each.quantity: each for each in compare(trace(), pl.concat([waits, rates]))}
    assert by_quantity["write_await"].real == 2.0
    assert by_quantity["write_await"].agrees


def test_unknown_quantities_and_subjects_are_passed_over() -> None:
    other = pl.concat(
        [row("docker-stats", "nonsense", [1.0]), row("docker-stats", "cpu_percent", [1.0], subject="x")]
    )
    assert compare(trace(), other) == ()


def test_samples_that_are_missing_in_between_are_no_samples_of_zero() -> None:
    # A process that works for one second, does nothing for the next, and so on: pidstat has no line for the latter.
    whole = trace(seconds=30)
    busy = [n // 4 * 60 + min(n % 4, 2) * 30 for n in range(61)]
    process = whole.tables["process"].with_columns(user_ticks=pl.Series(busy), system_ticks=0)
    of = Trace(whole.header, whole.quanta, True, {**whole.tables, "process": process})
    every_other = [
        row("pidstat", "cpu_percent", [60.0], subject="db pid 77", begin_s=float(begin), within=0)
        for begin in range(2, 28, 2)
    ]
    comparison = one(pl.concat(every_other), of)
    assert comparison.samples == 13
    assert comparison.real == 60.0
    assert comparison.view == pytest.approx(60.0)
    assert comparison.agrees
