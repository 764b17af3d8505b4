"""How close each side was to its limit of CPU time in the measure phase, from the run's trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from tare.monitors import OF_SUT
from tare.record.load_time import Span
from tare.record.trace import Traces, growth, read_all
from tare.record.turns import Measured, Turns
from tare.record.usage import Saturation, SaturationOfSides, Usage

SIDES = {"sut": OF_SUT, "client": "^client$"}
"""Side → pattern of its name, or its nodes' names, in traces."""
_NS, _US = 1e9, 1e6


def saturation_in(traces: Traces, usage: Usage, phase: Measured) -> SaturationOfSides | None:
    """Return the saturation of both sides in a phase; `None` without a trace."""
    if not (traces.trace / "process.parquet").is_file():
        return None
    allowed = {
        "sut": Allowed(usage.sut_cpus, usage.sut_cpus if usage.sut_node_cpus is None else usage.sut_node_cpus),
        "client": Allowed(usage.client_cpus, usage.client_cpus),
    }
    figures = {}
    for side, names in SIDES.items():
        away = traces.client if side == "client" else None
        span = phase.shifted(0.0 if away is None else away.ahead_s)
        place = traces.trace if away is None else away.trace
        nodes = traces.nodes if side == "sut" else ()
        tables = Tables(*(read_all(place, nodes, name) for name in ("cgroup", "process")))
        figures[side] = _of_trace(tables, names, allowed[side], span)
    return SaturationOfSides(**figures)


@dataclass(frozen=True)
class Tables:
    """Tables of control groups and of processes in a trace; `None`: missing."""

    groups: pl.DataFrame | None
    processes: pl.DataFrame | None


def _of_trace(tables: Tables, names: str, allowed: Allowed, phase: Measured) -> Saturation:
    groups, processes = tables.groups, tables.processes
    if processes is None:
        return Saturation()
    return of_side(
        None if groups is None else groups.filter(pl.col("name").str.contains(names)),
        processes.filter(pl.col("name").str.contains(names)),
        allowed,
        phase,
    )


@dataclass(frozen=True)
class Allowed:
    """CPUs' worth of time that a side may use, as a whole and for each of its nodes."""

    all: float | None
    each: float | None


def of_side(groups: pl.DataFrame | None, processes: pl.DataFrame, allowed: Allowed, phase: Measured) -> Saturation:
    """Return the saturation of the whole side or of its busiest node, whichever is higher.

    Nodes may share CPUs; then all together can reach the limit of these while no single node does.
    """
    names = sorted(set(processes["name"].to_list()))
    nodes = [
        saturation(
            None if groups is None else groups.filter(pl.col("name") == name),
            processes.filter(pl.col("name") == name),
            allowed.each,
            phase,
        )
        for name in names
    ]
    whole = saturation(groups, processes, allowed.all, phase)
    if len(nodes) < 2:
        return whole
    return Saturation(
        cpus=whole.cpus,
        busy=_most(each.busy for each in (*nodes, whole)),
        waiting=_most(each.waiting for each in nodes),
        throttled=_most(each.throttled for each in nodes),
        waiting_io=_most(each.waiting_io for each in nodes),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def saturation(
    groups: pl.DataFrame | None, processes: pl.DataFrame, allowed: float | None, phase: Measured
) -> Saturation:
    """Return the saturation of one side; `allowed`: CPUs by its CPU set and quota."""
    has_group = groups is not None and len(groups) > 0
    table, at, used = (groups, "usage_t0_ns", "usage_ns") if has_group else (processes, "cpu_t0_ns", "cpu_ns")
    assert table is not None  # noqa: S101 - either is there
    ran = _overlap(table, at, phase)
    if ran is None:
        return Saturation()
    seconds = ran.seconds
    cpus = _usable_cpus(allowed, _most_threads(groups if has_group else None, processes))
    used_ns = growth(table, at, used, ran)
    busy = None if used_ns is None or not cpus else used_ns / _NS / seconds / cpus
    if not has_group or groups is None:
        return Saturation(cpus, busy)
    waited_us, waited_io_us = (growth(groups, "pressure_t0_ns", f"{kind}_some_us", ran) for kind in ("cpu", "io"))
    periods, throttled = (
        growth(groups, "throttle_t0_ns", column, ran) for column in ("periods", "throttled_periods")
    )
    return Saturation(
        cpus=cpus,
        busy=busy,
        waiting=None if waited_us is None else waited_us / _US / seconds,
        waiting_io=None if waited_io_us is None else waited_io_us / _US / seconds,
        throttled=throttled / periods if throttled is not None and periods else None,
    )


def _overlap(table: pl.DataFrame, at: str, phase: Measured) -> Measured | None:
    """Return the part of the phase with samples: a client starts after it and ends before it; all of turns."""
    if isinstance(phase, Turns):
        return phase
    times = table[at].drop_nulls().to_numpy()
    if len(times) < 2:
        return None
    began, ended = max(phase.began_s, float(times.min()) / _NS), min(phase.ended_s, float(times.max()) / _NS)
    return Span(began, ended) if ended > began else None


def _most_threads(groups: pl.DataFrame | None, processes: pl.DataFrame) -> int | None:
    """Most threads at once over all nodes: counted by the control group, else summed over processes."""
    table, column = (processes, "threads") if groups is None else (groups, "pids")
    most = table.group_by("tick").agg(pl.col(column).sum())[column].max()
    return int(most) if isinstance(most, int) and most > 0 else None


def _usable_cpus(allowed: float | None, threads: int | None) -> float | None:
    if allowed is None or threads is None:
        return allowed
    return min(allowed, float(threads))
