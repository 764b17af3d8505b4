"""Lines over time from a trace: counters become rates over equal steps, gauges are read at the ends of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from tare.monitors import OF_SUT
from tare.store.trace import Trace

SUT, CLIENT, ENGINE, HOST = "SUT", "client", "engine", "host"
CPU, MEMORY, NETWORK = "CPU, cores", "memory, MiB", "network, MiB/s"
READ, WRITTEN = "disk read, MiB/s", "disk written, MiB/s"
MOST_STEPS = 60
"""Most points of a line; more could not be distinguished in a panel of two inches."""
_MIB, _NS = float(1 << 20), 1e9
_GROUPS: Mapping[str, str] = {SUT: OF_SUT, CLIENT: r"^(client|warm-up)$"}
_ENGINE = r"^(dockerd|containerd|podman|shim|client-shim|warm-up-shim|proxy)$"
_INNER = r"^host/(veth|br-|docker|virbr|cni|podman)"
"""Interfaces of the host whose traffic another interface, or a container's own, shows too."""

Line = tuple[np.ndarray, np.ndarray]
"""Times in seconds, and values."""


@dataclass(frozen=True)
class Point:
    """One value of one line. `second`: since measuring began."""

    panel: str
    who: str
    second: float
    value: float


def series(trace: Trace, zero_s: float) -> tuple[Point, ...]:
    """All lines of a trace. `zero_s`: second 0 on CLOCK_MONOTONIC. Data that the trace lacks give no line."""
    ticks = trace.tables["tick"]["woke_ns"].to_numpy() / _NS
    if len(ticks) < 2:
        return ()
    edges = np.linspace(ticks[0], ticks[-1], min(MOST_STEPS, len(ticks) - 1) + 1)
    return tuple(
        Point(panel, who, round(float(at) - zero_s, 2), round(float(value), 4))
        for panel, make in _PANELS.items()
        for who, (times, values) in make(trace, edges)
        for at, value in zip(times, values, strict=True)
    )


def _cpu(trace: Trace, edges: np.ndarray) -> Iterator[tuple[str, Line]]:
    for who, names in _GROUPS.items():
        line = _rate(_named(trace, "cgroup", names), "usage_t0_ns", ("usage_ns",), edges)
        line = line or _rate(_named(trace, "process", names), "cpu_t0_ns", ("cpu_ns",), edges)
        yield from _scaled(who, line, 1 / _NS)
    yield from _scaled(ENGINE, _rate(_named(trace, "process", _ENGINE), "cpu_t0_ns", ("cpu_ns",), edges), 1 / _NS)
    busy = ("user_ticks", "nice_ticks", "system_ticks", "irq_ticks", "softirq_ticks")
    yield from _scaled(HOST, _rate(_named(trace, "cpu", "^all$"), "t0_ns", busy, edges), 1 / trace.user_hz)


def _memory(trace: Trace, edges: np.ndarray) -> Iterator[tuple[str, Line]]:
    for who, names in _GROUPS.items():
        charged = _named(trace, "cgroup", names)
        yield from _scaled(who, _gauge(charged, "memory_t0_ns", pl.col("memory_bytes"), edges), 1 / _MIB)
    used = pl.col("total_bytes") - pl.col("available_bytes")
    yield from _scaled(HOST, _gauge(_named(trace, "memory", "^host$"), "meminfo_t0_ns", used, edges), 1 / _MIB)


def _disk(column: str, paged: str, trace: Trace, edges: np.ndarray) -> Iterator[tuple[str, Line]]:
    """Disk I/O. `column`: bytes of processes and, with the prefix `block_`, of groups; `paged`: KiB of the host."""
    for who, names in _GROUPS.items():
        line = _rate(_named(trace, "cgroup", names), "block_at_ns", (f"block_{column}",), edges)
        line = line or _rate(_named(trace, "process", names), "io_t0_ns", (column,), edges)
        yield from _scaled(who, line, 1 / _MIB)
    host = _rate(_named(trace, "memory", "^host$"), "vmstat_t0_ns", (paged,), edges)
    yield from _scaled(HOST, host, 1 / 1024)


def _network(trace: Trace, edges: np.ndarray) -> Iterator[tuple[str, Line]]:
    table, both = trace.table("interface"), ("rx_bytes", "tx_bytes")
    if table is None:
        return
    space = pl.col("name").str.split("/").list.first()
    for who, names in _GROUPS.items():
        own = table.filter(space.str.contains(names) & ~pl.col("name").str.ends_with("/lo"))
        yield from _scaled(who, _rate(own, "t0_ns", both, edges), 1 / _MIB)
    outer = table.filter((space == "host") & ~pl.col("name").str.contains(_INNER))
    yield from _scaled(HOST, _rate(outer, "t0_ns", both, edges), 1 / _MIB)


_PANELS: Mapping[str, Callable[[Trace, np.ndarray], Iterator[tuple[str, Line]]]] = {
    CPU: _cpu,
    MEMORY: _memory,
    READ: partial(_disk, "read_bytes", "pgpgin_kib"),
    WRITTEN: partial(_disk, "written_bytes", "pgpgout_kib"),
    NETWORK: _network,
}


def _scaled(who: str, line: Line | None, factor: float) -> Iterator[tuple[str, Line]]:
    if line is not None:
        yield who, (line[0], line[1] * factor)


def _named(trace: Trace, table: str, names: str) -> pl.DataFrame | None:
    rows = trace.table(table)
    return None if rows is None else rows.filter(pl.col("name").str.contains(names))


def _rate(rows: pl.DataFrame | None, at: str, columns: Sequence[str], edges: np.ndarray) -> Line | None:
    """Growth per second of the sum of counters over all targets, at the middles of the steps.

    Before its first sample and after its last, a target's counter counts as constant.
    """
    if rows is None:
        return None
    known = rows.drop_nulls([at, *columns]).with_columns(pl.sum_horizontal(columns).alias("sum"))
    total, there = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1, dtype=bool)
    for _, target in known.sort(at).group_by("target"):
        times, values = target[at].to_numpy() / _NS, target["sum"].to_numpy().astype(float)
        if len(times) > 1:
            total += np.diff(np.interp(edges, times, values)) / np.diff(edges)
            there |= (edges[1:] > times[0]) & (edges[:-1] < times[-1])
    return ((edges[1:] + edges[:-1])[there] / 2, total[there]) if there.any() else None


def _gauge(rows: pl.DataFrame | None, at: str, value: pl.Expr, edges: np.ndarray) -> Line | None:
    """Values at the ends of steps, from first to last sample of each target, added up over targets."""
    if rows is None:
        return None
    known = rows.select("target", pl.col(at).alias("at"), value.alias("value")).drop_nulls()
    total, there = np.zeros(len(edges)), np.zeros(len(edges), dtype=bool)
    for _, target in known.sort("at").group_by("target"):
        times, values = target["at"].to_numpy() / _NS, target["value"].to_numpy().astype(float)
        inside = (edges >= times[0]) & (edges <= times[-1])
        total[inside] += np.interp(edges[inside], times, values)
        there |= inside
    return (edges[there], total[there]) if there.any() else None
