"""What the engine did in a run's measure phase, from the trace: its CPU time, and the output that it passed on."""

from __future__ import annotations

import polars as pl

from tare.record.trace import Traces, growth
from tare.record.turns import Measured
from tare.run.monitoring.processes import DAEMONS, SHIM

_NS = 1e9
_CPU_AT, _IO_AT = "cpu_t0_ns", "io_t0_ns"


def engine_cpu_in(traces: Traces, phase: Measured) -> float | None:
    """Return the CPU seconds of the engine's daemons and of the SUT's shims; `None` if the trace has none."""
    used_ns = _grown(traces, (*DAEMONS, SHIM), _CPU_AT, "cpu_ns", phase)
    return None if used_ns is None else used_ns / _NS


def output_in(traces: Traces, phase: Measured) -> float | None:
    """Return the bytes that the SUT's shims read, which is what it printed; `None` if the trace has none."""
    return _grown(traces, (SHIM,), _IO_AT, "read_call_bytes", phase)


def _grown(traces: Traces, names: tuple[str, ...], at: str, column: str, phase: Measured) -> float | None:
    table = traces.read("process")
    if table is None or column not in table.columns:
        return None
    rows = table.filter(pl.col("name").cast(pl.String).is_in(names))
    return growth(rows, at, column, phase) if len(rows) else None
