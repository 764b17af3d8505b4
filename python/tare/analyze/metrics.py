"""What is compared: each metric's name, where its value stands in a measurement, and how to read its sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tare.analyze.columns import Column, Columns, Flags, known, or_zero, ratio
from tare.analyze.numbers import number_at, tree_at
from tare.analyze.statistics.histogram import histograms_of, percentile_of, percentiles_of
from tare.run.duet.swap import throughput_of
from tare.run.record import RunRecord

PRIMARY = "throughput"


def monitor_cpu_ms_per_s(run: RunRecord) -> float | None:
    """CPU milliseconds a second of all monitors, and of the engine's daemons, some of which work for monitors.

    The daemons are counted in every run, so that arms which differ in their monitors differ by what these cause.
    `None` where the time of a monitor is not known: it is not free.
    """
    if run.monitors is None:
        return None
    costs = [_of_one(each) for each in run.monitors.values() if "absent" not in each]
    known = [cost for cost in costs if cost is not None]
    began, ended = (number_at(run.usage, (key,)) for key in ("began_monotonic_s", "ended_monotonic_s"))
    if not known or len(known) < len(costs) or began is None or ended is None or ended <= began:
        return None
    engine = number_at(run.monitors, ("probe", "engine_cpu_s")) or 0.0  # none: there is no engine that could cost
    return 1e3 * (sum(known) + engine / (ended - began))


def differently_watched(runs: Iterable[RunRecord]) -> bool:
    """Whether these runs were watched by different monitors, or at different rates."""
    monitors = [run.settings.get("monitors") or {} for run in runs]
    return any(one != monitors[0] for one in monitors)


def _of_one(monitor: Mapping[str, Any]) -> float | None:
    used, began, ended = (number_at(monitor, (key,)) for key in ("cpu_s", "began_monotonic_s", "ended_monotonic_s"))
    return None if used is None or began is None or ended is None or ended <= began else used / (ended - began)


@dataclass(frozen=True)
class Metric:
    """One number of each run. `path`: keys from the top of the JSON of `workloads.Measurement`.

    `bucketed`: read from the generator's histogram, and so known to one bucket at best.
    """

    name: str
    title: str
    short: str
    unit: str
    path: tuple[str, ...]
    more_is_better: bool
    bucketed: bool
    derived: Callable[[RunRecord], float | None] | None = None
    """How it follows from the whole record, where the generator alone does not know it."""
    derived_column: Callable[[Columns], Column] | None = None
    """The same of many runs at once."""
    operation: str | None = None
    """The kind of operation that it is of, `None` for all of them together."""
    percent: float | None = None
    """Which percentile of the stored histogram it is."""
    source: Callable[[RunRecord], str | None] | None = None
    """By whom it was counted, where that may differ from run to run; only the same source is compared."""

    @property
    def resolution(self) -> tuple[str, ...]:
        """Where the relative width of the histogram bucket stands that it comes from."""
        return (*self.path[:-1], "resolution")

    def of(self, run: RunRecord) -> float | None:
        """The value of a run, `None` where it is not known."""
        return self.read(run.measurement) if self.derived is None else self.derived(run)

    def column(self, columns: Columns) -> Column:
        """The values of many runs, as `of` tells each."""
        if self.derived_column is not None:
            return self.derived_column(columns)
        if self.derived is not None:
            return columns.of(self.derived)
        values = columns.number("measurement", *self.path)
        if self.percent is None:
            return values
        above = self.path[:-2]
        counted = columns.once(("percentiles", *above), lambda: _counted(columns.trees("measurement", *above)))
        return np.where(counted.there, counted.percentiles[self.percent], values)

    def read(self, measurement: Mapping[str, Any] | None) -> float | None:
        """The value, `None` where the generator did not report it.

        A percentile is counted from the stored histograms; what the generator says of it is taken only where it
        left none.
        """
        part = tree_at(measurement, self.path[:-2])
        if self.percent is not None and part is not None and histograms_of(part):
            return percentile_of(part, self.percent)
        return number_at(measurement, self.path)


def cpu_per_operation_us(run: RunRecord) -> float | None:
    """CPU time of the SUT, and of the docker-proxy that carried its bytes, for one operation; microseconds.

    `None` where either is not known: a proxy whose time could not be read is not free.
    """
    operations = number_at(run.measurement, ("operations",))
    sut, proxy = sut_cpu_s(run), number_at(run.usage, ("proxy_cpu_s",))
    if sut is None or not operations or (proxy is None and is_proxied(run)):
        return None
    return 1e6 * (sut + (proxy or 0.0)) / operations


def _cpu_per_operation(columns: Columns) -> Column:
    """As `cpu_per_operation_us`."""
    proxy, proxied = columns.number("usage", "proxy_cpu_s"), columns.where(is_proxied)
    used = np.where(known(proxy) | ~proxied, sut_cpu(columns) + or_zero(proxy), np.nan)
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


def _io_per_operation(columns: Columns) -> Column:
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


def sut_cpu(columns: Columns) -> Column:
    """As `sut_cpu_s`."""
    used, over_s = (columns.number("usage", key) for key in ("sut_cpu_s", "sut_over_s"))
    whole = ratio(used, over_s) * columns.number("measurement", "duration_s")
    return np.where(known(over_s), whole, used)


@dataclass(frozen=True)
class _Counted:
    """Of many runs: which left histograms, and the percentiles that are counted from them."""

    there: Flags
    percentiles: Mapping[float, Column]


def _counted(parts: Sequence[Mapping[str, Any] | None]) -> _Counted:
    there = np.zeros(len(parts), dtype=bool)
    columns = {percent: np.full(len(parts), np.nan) for percent in _PERCENTS}
    for row, part in enumerate(parts):
        if part is None or not (part.get("histogram") or part.get("windows")) or not (of := histograms_of(part)):
            continue
        there[row] = True
        for percent, value in percentiles_of(part, of, _PERCENTS).items():
            columns[percent][row] = math.nan if value is None else value
    return _Counted(there, columns)


def _latency(name: str, title: str, short: str, key: str, percent: float | None = None) -> Metric:
    """The mean is of a sum that generators keep beside the histogram, and not subject to the buckets' width."""
    return Metric(
        name,
        title,
        f"{short} latency",
        "ms",
        ("latency", key),
        more_is_better=False,
        bucketed=percent is not None,
        percent=percent,
    )


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "throughput",
            "throughput",
            "throughput",
            "/s",
            ("throughput_per_s",),
            more_is_better=True,
            bucketed=False,
            derived=throughput_of,
        ),
        _latency("latency_mean", "mean latency", "mean", "mean_ms"),
        _latency("latency_p50", "median latency", "median", "p50_ms", 50),
        _latency("latency_p95", "95th percentile latency", "p95", "p95_ms", 95),
        _latency("latency_p99", "99th percentile latency", "p99", "p99_ms", 99),
        Metric(
            "cpu_per_operation",
            "CPU time per operation",
            "CPU/op",
            "µs",
            (),
            more_is_better=False,
            bucketed=False,
            derived=cpu_per_operation_us,
            derived_column=_cpu_per_operation,
        ),
        Metric(
            "io_per_operation",
            "block I/O per operation",
            "I/O/op",
            "KiB",
            (),
            more_is_better=False,
            bucketed=False,
            derived=io_per_operation_kib,
            derived_column=_io_per_operation,
            source=io_source,
        ),
    )
}
"""In the order in which reports show them; the first is the primary metric."""

MONITOR_CPU = Metric(
    "monitor_cpu",
    "CPU time of monitors",
    "monitors",
    "ms/s",
    (),
    more_is_better=False,
    bucketed=False,
    derived=monitor_cpu_ms_per_s,
)
"""Told only of studies whose arms are watched differently."""

_PERCENTS = tuple(sorted({metric.percent for metric in METRICS.values() if metric.percent is not None}))
_PER_OPERATION = tuple(name for name, metric in METRICS.items() if metric.path[:1] == ("latency",))


def metric_named(name: str) -> Metric:
    """The metric of that name: one of `METRICS`, `monitor_cpu`, or of one kind of operation, `read_latency_mean`.

    Raises `KeyError` for any other name.
    """
    if name in METRICS:
        return METRICS[name]
    if name == MONITOR_CPU.name:
        return MONITOR_CPU
    for whole in _PER_OPERATION:
        operation = name.removesuffix(f"_{whole}")
        if operation and operation != name:
            return of_operation(METRICS[whole], operation)
    raise KeyError(name)


def of_operation(metric: Metric, operation: str) -> Metric:
    """A latency metric of one kind of operation."""
    return replace(
        metric,
        name=f"{operation}_{metric.name}",
        title=f"{metric.title} of {operation}",
        short=f"{operation} {metric.short}",
        path=("by_operation", operation, *metric.path),
        operation=operation,
    )


def _only_by_operation(measurement: Mapping[str, Any] | None) -> bool:
    """Whether no latency of all operations is known, but of a kind: others' tables may have no more."""
    figures = measurement or {}
    return bool(figures.get("by_operation")) and all(
        value is None for value in (figures.get("latency") or {}).values()
    )


def metrics_of(runs: Iterable[RunRecord]) -> tuple[Metric, ...]:
    """What can be compared: `METRICS`, what monitors cost where they differ, latencies by operation.

    The latter where there are several kinds, or where a kind alone is known: of all, that is said otherwise.
    """
    runs = tuple(runs)
    kinds = dict.fromkeys(kind for run in runs for kind in (run.measurement or {}).get("by_operation") or ())
    apart = len(kinds) > 1 or any(_only_by_operation(run.measurement) for run in runs)
    names = sorted(kinds) if apart else ()
    return (
        *METRICS.values(),
        *([MONITOR_CPU] if differently_watched(runs) else []),
        *(of_operation(METRICS[name], kind) for kind in names for name in _PER_OPERATION),
    )


def resolution_of(measurement: Mapping[str, Any] | None, metric: Metric) -> float | None:
    """Relative width of the histogram bucket that a latency comes from: 0.018 for sysbench."""
    return number_at(measurement, metric.resolution)
