"""Bytes and packets that a run sent over the loopback interface, from its trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tare.errors import StoreError
from tare.parquet import readable
from tare.record.load_time import Span
from tare.record.raw_files import trace_of
from tare.record.run_record import RunRecord
from tare.record.trace import growth
from tare.record.turns import Measured
from tare.store.trace import Trace, is_trace, read_trace

HEADER_BYTES = 52
"""Headers that `lo` counts per packet: IPv4 20, TCP with timestamps 32. It removes Ethernet's header first.
"""
_LOOPBACK = "host/lo"
_COUNTERS = ("tx_bytes", "tx_packets")


@dataclass(frozen=True)
class Sent:
    """Payload bytes and packets of a measure phase, both ways together."""

    payload_bytes: float
    packets: float


Traffic = Callable[[RunRecord], Sent | None]


def loopback_traffic(run: RunRecord, raw: Callable[[RunRecord, str], Path]) -> Sent | None:
    """Payload and packets of the measure phase; `None` without figures in a trace, or between hosts.

    For bare runs, these are the packets of requests and replies, and of all other users of the loopback interface.
    """
    if run.client_host is not None:
        return None
    path = trace_of(raw(run, ""))
    phase = run.measured_time
    if phase is None or not is_trace(path):
        return None
    try:
        with readable(f"the trace of {run.run_id}"):
            return _sent(read_trace(path), phase)
    except StoreError:
        return None


def _sent(trace: Trace, time: Measured) -> Sent | None:
    table = trace.table("interface")
    if table is None:
        return None
    rows = table.filter(pl.col("name") == _LOOPBACK).drop_nulls(_COUNTERS)
    if isinstance(time, Span):
        rows = rows.filter(pl.col("t0_ns").is_between(round(1e9 * time.began_s), round(1e9 * time.ended_s)))
        if len(rows) < 2:
            return None
        first, *_, last = rows["t0_ns"].sort() / 1e9
        whole, time = time.seconds / (last - first), Span(first, last)
    else:
        whole = 1.0
    sent, packets = (growth(rows, "t0_ns", column, time) for column in _COUNTERS)
    if sent is None or packets is None:
        return None
    return Sent(max(0.0, sent - HEADER_BYTES * packets) * whole, packets * whole)
