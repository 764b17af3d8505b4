"""Time that operations wait without using a CPU, from the counters of a run's trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import polars as pl

from tare.monitors import OF_SUT
from tare.record.trace import Elsewhere, growth, read_all
from tare.record.turns import Measured

_US = 1e6
_NS = 1e9


class Wait(StrEnum):
    """Kinds of waiting, in the order of reports."""

    THROTTLED = "throttled"
    RUN_QUEUE = "run queue"
    DISK = "disk"


SIDES: Mapping[str, str] = {"server": OF_SUT, "client": "^client$"}


def waited(trace: Path, phase: Measured, others: Sequence[Elsewhere] = ()) -> Mapping[tuple[str, Wait], float]:
    """(side, kind) → seconds of the measure phase in which a thread waited; unknown figures are absent.

    `throttled`: time in which the quota had run out while threads wanted a CPU (cpu.stat), at most the whole phase.
    `run queue` and `disk`: time in which some thread waited for a CPU or for a device (PSI, `some`:
    Documentation/accounting/psi.rst). The kernel also counts throttled time as waiting for a CPU, so it is
    subtracted. Times of nodes are added up. `others`: traces of further hosts.
    """
    table = read_all(trace, others, "cgroup")
    if table is None:
        return {}
    waits: dict[tuple[str, Wait], float] = {}
    whole = phase.seconds
    for side, names in SIDES.items():
        rows = table.filter(pl.col("name").cast(pl.String).str.contains(names))
        if not len(rows):
            continue
        throttled_ns = growth(rows, "throttle_t0_ns", "throttled_ns", phase)
        throttled = None if throttled_ns is None else min(throttled_ns / _NS, whole)
        cpu_us = growth(rows, "pressure_t0_ns", "cpu_some_us", phase)
        io_us = growth(rows, "pressure_t0_ns", "io_some_us", phase)
        if throttled is not None:
            waits[side, Wait.THROTTLED] = throttled
        # Pressure includes throttled time: if that is unknown, so is the run queue.
        if cpu_us is not None and throttled is not None:
            waits[side, Wait.RUN_QUEUE] = max(cpu_us / _US - throttled, 0.0)
        if io_us is not None:
            waits[side, Wait.DISK] = io_us / _US
    return waits
