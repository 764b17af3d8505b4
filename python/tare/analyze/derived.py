"""Figures that follow from a run's whole record, of one run and, in a column, of many.

`None`, in a column NaN, where a part of the record is missing; never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tare.analyze.columns import Column, Columns, known, or_zero, ratio
from tare.analyze.numbers import number_at
from tare.run.record import RunRecord


def cpu_per_operation_us(run: RunRecord) -> float | None:
    """CPU time of the SUT, and of the docker-proxy that carried its bytes, for one operation; microseconds.

    `None` where either is not known: a proxy whose time could not be read is not free.
    """
    operations = number_at(run.measurement, ("operations",))
    sut, proxy = sut_cpu_s(run), number_at(run.usage, ("proxy_cpu_s",))
    if sut is None or not operations or (proxy is None and is_proxied(run)):
        return None
    return 1e6 * (sut + (proxy or 0.0)) / operations


def cpu_per_operation_column(columns: Columns) -> Column:
    """As `cpu_per_operation_us`."""
    proxy, proxied = columns.number("usage", "proxy_cpu_s"), columns.where(is_proxied)
    used = np.where(known(proxy) | ~proxied, sut_cpu_column(columns) + or_zero(proxy), np.nan)
    return ratio(1e6 * used, columns.number("measurement", "operations"))


def is_proxied(run: RunRecord) -> bool:
    """Whether its connections went through docker-proxy."""
    return run.path is not None and run.path.get("hop") == "docker-proxy"


def io_per_operation_kib(run: RunRecord) -> float | None:
    """Bytes between the SUT and block devices, read and written, for one operation; KiB.

    `None` where either way is not known. Nothing read or written is zero, of which no ratio can be made.
    """
    operations = number_at(run.measurement, ("operations",))
    read, written = (number_at(run.usage, (f"sut_{way}_bytes",)) for way in ("read", "write"))
    return (read + written) / 1024 / operations if read is not None and written is not None and operations else None


def io_per_operation_column(columns: Columns) -> Column:
    """As `io_per_operation_kib`."""
    read, written = (columns.number("usage", f"sut_{way}_bytes") for way in ("read", "write"))
    return ratio((read + written) / 1024, columns.number("measurement", "operations"))


def io_source(run: RunRecord) -> str | None:
    """Who counted the SUT's bytes: what was dirtied and what has reached a device are two figures."""
    source = (run.usage or {}).get("sut_io_source")
    return None if source is None else str(source)


def sut_cpu_s(run: RunRecord) -> float | None:
    """CPU time of the SUT over the measure phase; of a program that is itself the SUT, at the rate that was read.

    The counter of such a program is read while it runs, from a little after its start to a little before its end.
    """
    used, over_s = (number_at(run.usage, (key,)) for key in ("sut_cpu_s", "sut_over_s"))
    if used is None or over_s is None:
        return used
    whole_s = number_at(run.measurement, ("duration_s",))
    return None if not over_s or whole_s is None else used / over_s * whole_s


def sut_cpu_column(columns: Columns) -> Column:
    """As `sut_cpu_s`."""
    used, over_s = (columns.number("usage", key) for key in ("sut_cpu_s", "sut_over_s"))
    whole = ratio(used, over_s) * columns.number("measurement", "duration_s")
    return np.where(known(over_s), whole, used)


def monitor_cpu_ms_per_s(run: RunRecord) -> float | None:
    """CPU milliseconds a second of all monitors, and of the engine's daemons, some of which work for monitors.

    The daemons are counted in every run, so that arms which differ in their monitors differ by what these cause.
    `None` where the time of a monitor is not known: it is not free.
    """
    if run.monitors is None:
        return None
    costs = [_of_one(each) for each in run.monitors.values() if "absent" not in each]
    known_costs = [cost for cost in costs if cost is not None]
    began, ended = (number_at(run.usage, (key,)) for key in ("began_monotonic_s", "ended_monotonic_s"))
    if not known_costs or len(known_costs) < len(costs) or began is None or ended is None or ended <= began:
        return None
    engine = number_at(run.monitors, ("probe", "engine_cpu_s")) or 0.0  # none: there is no engine that could cost
    return 1e3 * (sum(known_costs) + engine / (ended - began))


def _of_one(monitor: Mapping[str, Any]) -> float | None:
    used, began, ended = (number_at(monitor, (key,)) for key in ("cpu_s", "began_monotonic_s", "ended_monotonic_s"))
    return None if used is None or began is None or ended is None or ended <= began else used / (ended - began)
