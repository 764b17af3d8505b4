"""Bytes and packets that a run sent over the loopback interface, from its trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tare.analyze.numbers import number_at
from tare.errors import StoreError
from tare.parquet import readable
from tare.run.monitoring.monitors import trace_of
from tare.run.record import RunRecord
from tare.store.trace import Trace, is_trace, read_trace

HEADER_BYTES = 52
"""Headers that `lo` counts per packet: IPv4 20, TCP with timestamps 32. It removes Ethernet's header first.
"""
_LOOPBACK = "host/lo"


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
    began, ended = (number_at(run.usage, (key,)) for key in ("began_monotonic_s", "ended_monotonic_s"))
    if began is None or ended is None or not is_trace(path):
        return None
    try:
        with readable(f"the trace of {run.run_id}"):
            return _sent(read_trace(path), began, ended)
    except StoreError:
        return None


def _sent(trace: Trace, began: float, ended: float) -> Sent | None:
    table = trace.table("interface")
    if table is None:
        return None
    rows = table.filter(
        (pl.col("name") == _LOOPBACK) & pl.col("t0_ns").is_between(round(1e9 * began), round(1e9 * ended))
    )
    rows = rows.drop_nulls(("tx_bytes", "tx_packets")).sort("t0_ns")
    covered = (rows["t0_ns"][-1] - rows["t0_ns"][0]) / 1e9 if rows.height else 0.0
    if covered <= 0:
        return None
    sent = rows["tx_bytes"][-1] - rows["tx_bytes"][0]
    packets = rows["tx_packets"][-1] - rows["tx_packets"][0]
    whole = (ended - began) / covered
    return Sent(max(0.0, float(sent - HEADER_BYTES * packets)) * whole, packets * whole)
