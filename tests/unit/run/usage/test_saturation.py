from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tare.record.load_time import Span
from tare.record.trace import Traces
from tare.record.usage import Saturation, Usage
from tare.run.usage.saturation import Allowed, of_side, saturation, saturation_in

S = 1_000_000_000
PHASE = Span(10.0, 20.0)
COUNTERS = ("usage_ns", "cpu_some_us", "io_some_us", "periods", "throttled_periods")


def group(*, seconds: tuple[int, int] = (9, 21), **rates: float) -> pl.DataFrame:
    """A control group read once a second whose counters grow at even rates a second; `pids` stays."""
    rows = []
    for at in range(seconds[0], seconds[1] + 1):
        since = at - seconds[0]
        row: dict[str, Any] = {"target": 1, "name": "client", "tick": at, "pids": rates.get("pids", 8)}
        for window in ("usage", "pressure", "throttle"):
            row[f"{window}_t0_ns"] = at * S
        for counter in COUNTERS:
            row[counter] = round(rates[counter] * since) if counter in rates else None
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col(*COUNTERS).cast(pl.Int64))


def process(cpu_rate: float = 0.0, threads: int = 4) -> pl.DataFrame:
    rows = [
        {"target": 2, "name": "client", "tick": at, "cpu_t0_ns": at * S, "cpu_ns": round(cpu_rate * at * S),
         "threads": threads}
        for at in range(9, 22)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_a_side_that_uses_all_it_is_allowed_is_busy() -> None:
    result = saturation(group(usage_ns=1.9 * S, cpu_some_us=250_000), process(), 2.0, PHASE)
    assert (result.cpus, result.throttled, result.waiting_io) == (2.0, None, None)
    assert result.busy == pytest.approx(0.95)
    assert result.waiting == pytest.approx(0.25)


def test_waiting_for_io_is_told_beside_waiting_for_a_cpu() -> None:
    result = saturation(group(usage_ns=0.3 * S, cpu_some_us=100_000, io_some_us=870_000), process(), 1.0, PHASE)
    assert result.waiting == pytest.approx(0.1)
    assert result.waiting_io == pytest.approx(0.87)


def test_one_thread_can_use_no_more_than_one_cpu() -> None:
    result = saturation(group(usage_ns=0.97 * S, pids=1), process(), 2.0, PHASE)
    assert result.cpus == 1.0
    assert result.busy == pytest.approx(0.97)


def test_a_quota_that_runs_out_shows_in_its_periods() -> None:
    result = saturation(group(usage_ns=0.4 * S, periods=10, throttled_periods=7), process(), 0.5, PHASE)
    assert result.throttled == pytest.approx(0.7)
    assert result.busy == pytest.approx(0.8)


def test_a_client_counts_for_the_time_for_which_it_ran() -> None:
    result = saturation(group(seconds=(15, 19), usage_ns=0.9 * S), process(), 1.0, PHASE)
    assert result.busy == pytest.approx(0.9)


def test_without_a_control_group_its_processes_tell() -> None:
    result = saturation(None, process(cpu_rate=0.5, threads=1), 2.0, PHASE)
    assert result == Saturation(cpus=1.0, busy=0.5, waiting=None, throttled=None)


def test_a_side_that_is_not_in_the_trace_is_unknown() -> None:
    nothing = process().clear()
    assert saturation(group().clear(), nothing, 1.0, PHASE) == Saturation()


def test_sides_are_unknown_without_a_trace_of_them(tmp_path: Path) -> None:
    usage, traces = Usage(client_cpus=2.0), Traces(tmp_path)
    assert saturation_in(traces, usage, PHASE) is None
    process(cpu_rate=1.0, threads=2).write_parquet(tmp_path / "process.parquet")
    sides = saturation_in(traces, usage, PHASE)
    assert sides is not None
    assert sides.client is not None
    assert sides.client.busy == pytest.approx(0.5)
    assert sides.sut == Saturation()


def nodes(*rates: float | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Control groups and processes of nodes of 8 threads that use so many CPUs; `None`: of no known use."""
    groups, processes = [], []
    for number, rate in enumerate(rates, start=1):
        as_node = [pl.lit(f"sut-{number}").alias("name"), pl.lit(number, dtype=pl.Int64).alias("target")]
        known: dict[str, Any] = {} if rate is None else {"usage_ns": rate * S, "cpu_some_us": rate * 1e5}
        groups.append(group(**known).with_columns(as_node))
        processes.append(process().with_columns(as_node))
    return pl.concat(groups), pl.concat(processes)


def test_a_node_that_is_at_its_end_saturates_the_cluster() -> None:
    usage = of_side(*nodes(0.2, 0.97, 0.3), Allowed(3.0, 1.0), PHASE)
    assert usage.busy == pytest.approx(0.97)
    assert usage.waiting == pytest.approx(0.097)
    assert usage.cpus == 3.0


def test_nodes_that_share_a_cpu_are_at_its_end_together() -> None:
    usage = of_side(*nodes(0.3, 0.3, 0.38), Allowed(1.0, 1.0), PHASE)
    assert usage.busy == pytest.approx(0.98)


def test_a_node_of_which_nothing_is_known_counts_for_nothing() -> None:
    usage = of_side(*nodes(0.2, None), Allowed(2.0, 1.0), PHASE)
    assert usage.busy == pytest.approx(0.2)
    assert usage.throttled is None
    assert of_side(*nodes(None, None), Allowed(2.0, 1.0), PHASE).busy is None
