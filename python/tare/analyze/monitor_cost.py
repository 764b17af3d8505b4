"""CPU time of whatever watches a run, so that what watching costs is an estimate like any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tare.analyze.numbers import number_at
from tare.run.record import RunRecord


def monitor_cpu_ms_per_s(run: RunRecord) -> float | None:
    """CPU milliseconds a second of all monitors, and of the engine's daemons, some of which work for monitors.

    The daemons are counted in every run, so that arms which differ in their monitors differ by what these cause.
    `None` where the time of a monitor is not known: it is not free.
    """
    if run.monitors is None:
        return None
    costs = [_of_one(told) for told in run.monitors.values() if "absent" not in told]
    known = [cost for cost in costs if cost is not None]
    began, ended = (number_at(run.usage, (key,)) for key in ("began_monotonic_s", "ended_monotonic_s"))
    if not known or len(known) < len(costs) or began is None or ended is None or ended <= began:
        return None
    engine = number_at(run.monitors, ("probe", "engine_cpu_s")) or 0.0  # none: there is no engine that could cost
    return 1e3 * (sum(known) + engine / (ended - began))


def differently_watched(runs: Iterable[RunRecord]) -> bool:
    """Whether these runs were watched by different monitors, or at different rates."""
    found = [run.settings.get("monitors") or {} for run in runs]
    return any(one != found[0] for one in found)


def _of_one(told: Mapping[str, Any]) -> float | None:
    used, began, ended = (number_at(told, (key,)) for key in ("cpu_s", "began_monotonic_s", "ended_monotonic_s"))
    return None if used is None or began is None or ended is None or ended <= began else used / (ended - began)
