"""Bytes of a SUT's nodes together, which are not known while those of one are not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tare.record.load_time import Span
from tare.record.trace import Traces
from tare.run.usage.disk import SutIo, sut_io_in

S = 1_000_000_000
PHASE = Span(10.0, 20.0)


def record(trace: Path, **written_per_s: int | None) -> None:
    """A trace in which nodes write so many bytes a second by their control groups."""
    rows = [
        {
            "target": target,
            "name": name.replace("_", "-"),
            "tick": at,
            "block_at_ns": at * S,
            "block_read_bytes": None if rate is None else 0,
            "block_written_bytes": None if rate is None else rate * at,
        }
        for target, (name, rate) in enumerate(written_per_s.items())
        for at in range(9, 22)
    ]
    others = ("io_t0_ns", "read_bytes", "written_bytes", "bfq_t0_ns", "bfq_read_bytes", "bfq_written_bytes")
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in others).write_parquet(
        trace / "cgroup.parquet"
    )


def test_what_nodes_write_adds_up(tmp_path: Path) -> None:
    record(tmp_path, sut_1=100, sut_2=20, sut_10=3, client=5000)
    moved = sut_io_in(Traces(tmp_path), PHASE)
    assert moved.written_bytes == pytest.approx(1230.0)
    assert moved.read_bytes == 0.0


def test_one_server_is_told_of_as_ever(tmp_path: Path) -> None:
    record(tmp_path, sut=100, shim=7)
    assert sut_io_in(Traces(tmp_path), PHASE).written_bytes == pytest.approx(1000.0)


def test_a_node_that_is_not_told_of_leaves_the_sum_unknown(tmp_path: Path) -> None:
    record(tmp_path, sut_1=100, sut_2=None)
    assert sut_io_in(Traces(tmp_path), PHASE) == SutIo()
