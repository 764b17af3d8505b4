"""mpstat: time of each CPU by mode."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import risen
from tare.analyze.views.model import View
from tare.analyze.views.sysstat import (
    INTERVAL,
    SOURCE,
    idle_ticks,
    iowait_ticks,
    share_of,
    share_of_cpus,
    without_guest,
)

_PRINTED = {
    "usr": without_guest("user", "guest"),
    "nice": without_guest("nice", "guest_nice"),
    "sys": risen("system_ticks"),
    "iowait": iowait_ticks(),
    "irq": risen("irq_ticks"),
    "soft": risen("softirq_ticks"),
    "steal": risen("steal_ticks"),
    "guest": risen("guest_ticks"),
    "gnice": risen("guest_nice_ticks"),
    "idle": idle_ticks(),
}


FIELDS = tuple(_PRINTED)


def share(readings: pl.DataFrame, field: str) -> pl.DataFrame:
    """Growth of a field in percent of the growth of all fields."""
    return share_of(readings, _PRINTED[field], idle=field == "idle")


_SAYS = {
    "usr": "Δ(user - guest) / Σ * 100, where Σ is the growth of user, nice, system, idle, iowait, irq, softirq "
    "and steal",
    "nice": "Δ(nice - guest_nice) / Σ * 100",
    "sys": "Δsystem / Σ * 100",
    "iowait": "Δiowait / Σ * 100",
    "irq": "Δirq / Σ * 100",
    "soft": "Δsoftirq / Σ * 100",
    "steal": "Δsteal / Σ * 100",
    "guest": "Δguest / Σ * 100",
    "gnice": "Δguest_nice / Σ * 100",
    "idle": "Δidle / Σ * 100",
}

MPSTAT = View(
    tool="mpstat",
    title="mpstat",
    cadence="Any whole number of seconds, by an alarm that does not drift.",
    quantities=tuple(
        share_of_cpus(
            name=field,
            shown=f"%{field}",
            formula=partial(share, field=field),
            says=says,
            cites=f"{SOURCE} mpstat.c write_json_cpu_stats; {INTERVAL}",
        )
        for field, says in _SAYS.items()
    ),
    blind_to=(
        "containers: 100 % is the whole host (CPU all) or one CPU, and it is unknown whose time it was",
        "how long something waited for a CPU",
        "memory, disks, network",
    ),
)
