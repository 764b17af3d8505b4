from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tare.analyze.explain.waiting import Wait, waited
from tare.record.load_time import Span

S = 1_000_000_000


def trace(directory: Path, name: str, **ends: float) -> Path:
    """Ten seconds of one control group: its counters at both ends."""
    at = [0, 10 * S]
    columns = {"throttled_ns": 1e9, "cpu_some_us": 1e6, "io_some_us": 1e6}
    rows = {key: [0, round(ends[key] * unit)] if key in ends else [None, None] for key, unit in columns.items()}
    frame = pl.DataFrame(
        {"target": [1, 1], "name": [name, name], "throttle_t0_ns": at, "pressure_t0_ns": at, **rows},
        schema_overrides=dict.fromkeys(columns, pl.Int64),
    )
    frame.write_parquet(directory / "cgroup.parquet")
    return directory


def test_waiting_is_read_off_the_counters_of_the_phase(tmp_path: Path) -> None:
    values = waited(trace(tmp_path, "sut", throttled_ns=4.0, cpu_some_us=6.0, io_some_us=1.0), Span(0, 5))
    assert values == {
        ("server", Wait.THROTTLED): pytest.approx(2.0),
        ("server", Wait.RUN_QUEUE): pytest.approx(1.0),
        ("server", Wait.DISK): pytest.approx(0.5),
    }


def test_throttled_on_several_cpus_at_once_is_no_longer_than_the_phase(tmp_path: Path) -> None:
    values = waited(trace(tmp_path, "client", throttled_ns=40.0, cpu_some_us=9.0), Span(0, 10))
    assert values == {("client", Wait.THROTTLED): 10.0, ("client", Wait.RUN_QUEUE): 0.0}


def test_what_the_trace_does_not_tell_is_not_zero(tmp_path: Path) -> None:
    assert waited(tmp_path, Span(0, 5)) == {}
    assert waited(trace(tmp_path, "sut"), Span(0, 5)) == {}
    assert waited(trace(tmp_path, "proxy", io_some_us=3.0), Span(0, 5)) == {}
