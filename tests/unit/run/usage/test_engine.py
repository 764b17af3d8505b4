"""CPU time of the engine and output of the SUT, from the trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tare.record.load_time import Span
from tare.record.trace import Traces
from tare.run.usage.engine import engine_cpu_in, output_in

S = 1_000_000_000
PHASE = Span(10.0, 20.0)


def record(trace: Path, **per_s: tuple[int, int]) -> None:
    """Write a trace of processes: CPU time in nanoseconds, and bytes read, for each second."""
    rows = [
        {
            "target": target,
            "name": name.replace("_", "-"),
            "cpu_t0_ns": at * S,
            "cpu_ns": cpu * at,
            "io_t0_ns": at * S,
            "read_call_bytes": read * at,
        }
        for target, (name, (cpu, read)) in enumerate(per_s.items())
        for at in range(9, 22)
    ]
    pl.DataFrame(rows).write_parquet(trace / "process.parquet")


def test_daemons_and_the_suts_shim_count_and_only_the_shims_input_is_output(tmp_path: Path) -> None:
    record(tmp_path, dockerd=(S // 10, 50), containerd=(S // 100, 7), shim=(S // 100, 300), client_shim=(S, 900))
    assert engine_cpu_in(Traces(tmp_path), PHASE) == pytest.approx(1.2)
    assert output_in(Traces(tmp_path), PHASE) == pytest.approx(3000.0)


def test_without_an_engine_or_a_trace_nothing_is_known(tmp_path: Path) -> None:
    assert engine_cpu_in(Traces(tmp_path), PHASE) is None
    record(tmp_path, sut=(S, 300))
    assert engine_cpu_in(Traces(tmp_path), PHASE) is None
    assert output_in(Traces(tmp_path), PHASE) is None
