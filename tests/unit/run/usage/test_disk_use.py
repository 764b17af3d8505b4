"""How busy a disk was is read off the trace, and a disk of which the trace does not tell is not idle."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tare.record.load_time import Span
from tare.record.trace import Traces
from tare.record.usage import Usage
from tare.run.usage import with_traces
from tare.run.usage.disk import busiest, disk_use_in

S = 1_000_000_000
PHASE = Span(10.0, 20.0)
COLUMNS = ("busy_ms", "reads", "writes", "read_sectors", "written_sectors", "read_ms", "write_ms", "discard_ms",
           "flush_ms")  # fmt: skip


def disk(name: str = "vda", target: int = 1, *, first: int = 5, **rates: int) -> pl.DataFrame:
    """Read once a second to second 25; its counters grow by so much a second from a large value on."""
    rows: list[dict[str, Any]] = [
        {"target": target, "name": name, "t0_ns": at * S}
        | {column: 1_000_000 + rates.get(column, 0) * at for column in COLUMNS}
        for at in range(first, 26)
    ]
    return pl.DataFrame(rows)


def test_what_a_disk_did_is_what_its_counters_grew_by() -> None:
    result = busiest(
        disk(busy_ms=950, reads=400, writes=100, read_sectors=12_800, written_sectors=3_200, read_ms=3_600,
             write_ms=400), PHASE,
    )  # fmt: skip
    assert result is not None
    assert dataclasses.asdict(result) == pytest.approx(
        {"name": "vda", "busy": 0.95, "depth": 4.0, "reads_per_s": 400, "writes_per_s": 100, "read_ms": 9.0,
         "write_ms": 4.0, "read_bytes_per_s": 6_553_600, "written_bytes_per_s": 1_638_400}
    )  # fmt: skip


def test_short_requests_make_no_disk_busy_whatever_ticks_are_counted() -> None:
    """250 reads a second of 0.1 ms each: a kernel that counts a tick of 4 ms for each would say 100 %."""
    result = busiest(disk(busy_ms=1000, reads=250, read_ms=25), PHASE)
    assert result is not None
    assert result.busy == pytest.approx(0.025)


def test_the_busiest_of_several_is_told() -> None:
    several = pl.concat([disk("loop0", 1), disk("vda", 2, busy_ms=600, write_ms=900), disk("vdb", 3, busy_ms=90)])
    result = busiest(several, PHASE)
    assert result is not None
    assert result.name == "vda"
    assert result.read_ms is None


def test_a_disk_that_came_in_between_is_left_out() -> None:
    assert busiest(disk(first=12, busy_ms=999, write_ms=5000), PHASE) is None


def test_a_disk_is_known_only_where_the_trace_has_figures(tmp_path: Path) -> None:
    traces = Traces(tmp_path)
    assert disk_use_in(traces, PHASE) is None
    disk(busy_ms=500, read_ms=700).write_parquet(tmp_path / "disk.parquet")
    use = disk_use_in(traces, PHASE)
    assert use is not None
    assert use.busy == pytest.approx(0.5)
    disk().with_columns(pl.lit(None, dtype=pl.Int64).alias("busy_ms")).write_parquet(tmp_path / "disk.parquet")
    assert disk_use_in(traces, PHASE) is None


def test_without_a_measure_phase_traces_add_nothing(tmp_path: Path) -> None:
    disk(busy_ms=500, read_ms=700).write_parquet(tmp_path / "disk.parquet")
    assert with_traces(None, Traces(tmp_path), None) is None
    assert with_traces(Usage(monotonic_s=10.0), Traces(tmp_path), None) == Usage(monotonic_s=10.0)
