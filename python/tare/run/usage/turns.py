"""CPU time of an arm that took turns, from its trace: in its turns, and what its server used between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from tare.record.trace import Traces
from tare.record.turns import Rates, Turns
from tare.record.usage import Usage
from tare.run.usage.saturation import SIDES
from tare.sites.process import TICKS_PER_S

_NS = 1e9
_CARRIERS = "^(proxy|pasta|slirp4netns|rootlessport)$"
"""Programs in the trace that carry this arm's bytes."""
_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def in_turns(usage: Usage, traces: Traces, turns: Turns | None) -> Usage:
    """Replace CPU times of the phase by those of an arm's turns.

    `usage` stays as it is, with `turns_s` unknown, if the trace does not tell turns from the rest.
    """
    groups, processes = traces.read("cgroup"), traces.read("process")
    if turns is None or processes is None:
        return usage
    used = {side: _rates(groups, processes, names, turns) for side, names in SIDES.items()}
    carried = _rates(None, processes, _CARRIERS, turns)
    sut, client = used["sut"], used["client"]
    if sut is None or client is None or (usage.proxy_cpu_s is not None and carried is None):
        return usage

    def seconds(rates: Rates) -> float:
        return max(0.0, rates.driven) * turns.seconds

    return replace(
        usage,
        turns_s=turns.seconds,
        sut_cpu_s=seconds(sut),
        client_cpu_s=seconds(client),
        proxy_cpu_s=None if usage.proxy_cpu_s is None or carried is None else seconds(carried),
        machine=_machine(traces, turns) or usage.machine,
        idle_cpus=max(0.0, sut.idle + (0.0 if carried is None else carried.idle)),
    )


def _rates(groups: pl.DataFrame | None, processes: pl.DataFrame, names: str, turns: Turns) -> Rates | None:
    """CPUs that a side used, driven and idle: its control group's, else its processes'; `None` if unknown."""
    of_group = (
        pl.DataFrame() if groups is None else groups.filter(pl.col("name").cast(pl.String).str.contains(names))
    )
    table, at, column = of_group, "usage_t0_ns", "usage_ns"
    if not len(of_group):
        table = processes.filter(pl.col("name").cast(pl.String).str.contains(names))
        at, column = "cpu_t0_ns", "cpu_ns"
    found = []
    for _, rows in table.drop_nulls([at, column]).sort(at).group_by("target"):
        found.append(turns.rates(rows[at].to_numpy().astype(float), rows[column].to_numpy() / _NS))
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return Rates(sum(each.driven for each in known), sum(each.idle for each in known))


def _machine(traces: Traces, turns: Turns) -> Mapping[str, float] | None:
    """Mode → CPU seconds of the whole machine in the arm's turns."""
    table = traces.read("cpu")
    if table is None:
        return None
    rows = table.filter(pl.col("name") == "all").sort("t0_ns")
    at = rows["t0_ns"].to_numpy().astype(float)
    grown = {mode: turns.growth(at, rows[f"{mode}_ticks"].to_numpy() / TICKS_PER_S) for mode in _MODES}
    known = {mode: seconds for mode, seconds in grown.items() if seconds is not None}
    return known if len(known) == len(grown) else None
