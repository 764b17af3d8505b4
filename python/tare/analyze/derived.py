"""Figures derived from a run's whole record, for one run and, as a column, for many.

A figure is `None`, or NaN in a column, if a part of the record is missing; never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tare.analyze.columns import Column, Columns, known, or_zero, ratio
from tare.analyze.numbers import number_at
from tare.record.monitor import MonitorFacts
from tare.record.network_path import Hop
from tare.record.run_record import RunRecord
from tare.record.swap_halves import throughput_of


def cpu_per_operation_us(run: RunRecord) -> float | None:
    """CPU time in microseconds of the SUT, and of the program that carried its bytes, for one operation.

    `None` if either is unknown: a proxy whose time could not be read is not free.
    """
    operations = run.measurement and run.measurement.operations
    sut, proxy = sut_cpu_s(run), run.usage and run.usage.proxy_cpu_s
    if sut is None or not operations or (proxy is None and is_carried(run)):
        return None
    return 1e6 * (sut + (proxy or 0.0)) / operations


def cpu_per_operation_column(columns: Columns) -> Column:
    """Column of `cpu_per_operation_us`."""
    proxy, proxied = columns.number("usage", "proxy_cpu_s"), columns.where(is_carried)
    used = np.where(known(proxy) | ~proxied, sut_cpu_column(columns) + or_zero(proxy), np.nan)
    return ratio(1e6 * used, columns.number("measurement", "operations"))


def is_proxied(run: RunRecord) -> bool:
    """Whether the run's connections went through docker-proxy."""
    return run.path is not None and run.path.hop is Hop.DOCKER_PROXY


def is_carried(run: RunRecord) -> bool:
    """Whether a program read and wrote every byte of the run's connections: docker-proxy, or one without root."""
    return run.path is not None and run.path.is_carried


def io_per_operation_kib(run: RunRecord) -> float | None:
    """KiB that the SUT read from and wrote to block devices, for one operation.

    `None` if either direction is unknown. Without any I/O the figure is 0, which gives no ratio.
    """
    operations = run.measurement and run.measurement.operations
    read, written = run.usage and run.usage.sut_read_bytes, run.usage and run.usage.sut_write_bytes
    return (read + written) / 1024 / operations if read is not None and written is not None and operations else None


def io_per_operation_column(columns: Columns) -> Column:
    """Column of `io_per_operation_kib`."""
    read, written = (columns.number("usage", f"sut_{way}_bytes") for way in ("read", "write"))
    return ratio((read + written) / 1024, columns.number("measurement", "operations"))


def io_source(run: RunRecord) -> str | None:
    """Source that counted the SUT's bytes; dirtied bytes and bytes that reached a device are different figures."""
    return run.usage and run.usage.sut_io_source


def throttled_share(run: RunRecord) -> float | None:
    """Share of its enforcement periods in which the SUT's quota ran out; `None` if unknown."""
    saturation = run.usage and run.usage.saturation
    return saturation and saturation.sut and saturation.sut.throttled


def sut_cpu_s(run: RunRecord) -> float | None:
    """CPU time in seconds of the SUT over the measure phase; extrapolated if a program is itself the SUT.

    The counter of such a program is read from a little after its start to a little before its end.
    """
    used, over_s = run.usage and run.usage.sut_cpu_s, run.usage and run.usage.sut_over_s
    if used is None or over_s is None:
        return used
    whole_s = run.measurement and run.measurement.duration_s
    return None if not over_s or whole_s is None else used / over_s * whole_s


def sut_cpus_used(run: RunRecord) -> float | None:
    """CPU time of the SUT in seconds per second of the measure phase, or of an arm's turns; `None` if unknown."""
    used, turns_s = sut_cpu_s(run), run.usage and run.usage.turns_s
    over_s = turns_s or (run.measurement and run.measurement.duration_s)
    return None if used is None or not over_s else used / over_s


def sut_cpu_column(columns: Columns) -> Column:
    """Column of `sut_cpu_s`."""
    used, over_s = (columns.number("usage", key) for key in ("sut_cpu_s", "sut_over_s"))
    whole = ratio(used, over_s) * columns.number("measurement", "duration_s")
    return np.where(known(over_s), whole, used)


def usage_seconds(columns: Columns) -> Column:
    """Length of the time that CPU times are of: of the measure phase, or of an arm's turns."""
    turns_s = columns.number("usage", "turns_s")
    return np.where(known(turns_s), turns_s, columns.number("usage", "monotonic_s"))


def monitor_cpu_ms_per_s(run: RunRecord) -> float | None:
    """CPU milliseconds per second of all monitors and of the engine's daemons, some of which work for monitors.

    The daemons count in every run, so that arms with different monitors differ by what their monitors cause.
    `None` if the time of a monitor is unknown: it is not free.
    """
    if run.monitors is None:
        return None
    costs = [_cpu_share(each) for each in run.monitors.values() if each.absent is None]
    known_costs = [cost for cost in costs if cost is not None]
    phase = run.usage and run.usage.phase
    if not known_costs or len(known_costs) < len(costs) or phase is None or phase.ended_s <= phase.began_s:
        return None
    engine = number_at(run.monitors, ("probe", "engine_cpu_s")) or 0.0  # no figure: there is no engine
    return 1e3 * (sum(known_costs) + engine / (phase.ended_s - phase.began_s))


def _cpu_share(monitor: MonitorFacts) -> float | None:
    used, began, ended = monitor.cpu_s, monitor.began_monotonic_s, monitor.ended_monotonic_s
    return None if used is None or began is None or ended is None or ended <= began else used / (ended - began)


@dataclass(frozen=True)
class Derivation:
    """How a metric follows from a whole record."""

    of: Callable[[RunRecord], float | None]
    column: Callable[[Columns], Column] | None = None
    """The same for many runs at once; `None`: run by run."""
    source: Callable[[RunRecord], str | None] | None = None
    """Source that counted the value, if that differs between runs; only values of the same source are compared."""

    def column_of(self, columns: Columns) -> Column:
        """Values of many runs, as `of` gives them."""
        return columns.of(self.of) if self.column is None else self.column(columns)


DERIVATIONS: Mapping[str, Derivation] = {
    "throughput": Derivation(throughput_of),
    "cpu_per_operation": Derivation(cpu_per_operation_us, cpu_per_operation_column),
    "io_per_operation": Derivation(io_per_operation_kib, io_per_operation_column, io_source),
}
"""Metrics of `study.metrics.SPECS` that no path in the measurement leads to."""
