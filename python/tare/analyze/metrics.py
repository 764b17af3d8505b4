"""Metrics that are compared: names, paths of their values in a measurement, and the meaning of their sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tare.analyze.columns import Column, Columns, Flags
from tare.analyze.derived import (
    cpu_per_operation_column,
    cpu_per_operation_us,
    io_per_operation_column,
    io_per_operation_kib,
    io_source,
    monitor_cpu_ms_per_s,
)
from tare.analyze.numbers import number_at, tree_at
from tare.analyze.statistics.histogram import histograms_of, percentile_of, percentiles_of
from tare.run.duet.swap import throughput_of
from tare.run.record import RunRecord

PRIMARY = "throughput"


@dataclass(frozen=True)
class Metric:
    """One number of each run: the value at `path` in its measurement, or a `derived` value.

    `path`: keys from the top of the JSON of `workloads.Measurement`. `bucketed`: the value comes from the
    generator's histogram, so its precision is one bucket.
    """

    name: str
    title: str
    short: str
    unit: str
    path: tuple[str, ...] = ()
    more_is_better: bool = False
    bucketed: bool = False
    derived: Callable[[RunRecord], float | None] | None = None
    """Function of the whole record, for values that the generator does not report."""
    derived_column: Callable[[Columns], Column] | None = None
    """The same function for many runs at once."""
    operation: str | None = None
    """Kind of operation; `None` for all kinds together."""
    percent: float | None = None
    """Percentile of the stored histogram; `None` for other values."""
    source: Callable[[RunRecord], str | None] | None = None
    """Source that counted the value, if that differs between runs; only values of the same source are compared."""

    @property
    def resolution(self) -> tuple[str, ...]:
        """Path of the relative width of the histogram's buckets."""
        return (*self.path[:-1], "resolution")

    def of(self, run: RunRecord) -> float | None:
        """Value of a run; `None` if unknown."""
        return self.read(run.measurement) if self.derived is None else self.derived(run)

    def column(self, columns: Columns) -> Column:
        """Values of many runs, as `of` gives them."""
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
        """Value in a measurement; `None` if the generator did not report it.

        A percentile is counted from the stored histograms; the generator's own figure is used only if there are
        none.
        """
        part = tree_at(measurement, self.path[:-2])
        if self.percent is not None and part is not None and histograms_of(part):
            return percentile_of(part, self.percent)
        return number_at(measurement, self.path)


@dataclass(frozen=True)
class _Counted:
    """Percentiles of many runs, counted from histograms. `there`: which runs have histograms."""

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
    """Make a latency metric. The mean comes from a sum that generators keep, so buckets do not limit it."""
    return Metric(
        name,
        title,
        f"{short} latency",
        "ms",
        ("latency", key),
        bucketed=percent is not None,
        percent=percent,
    )


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "throughput", "throughput", "throughput", "/s", ("throughput_per_s",),
            more_is_better=True, derived=throughput_of,
        ),
        _latency("latency_mean", "mean latency", "mean", "mean_ms"),
        _latency("latency_p50", "median latency", "median", "p50_ms", 50),
        _latency("latency_p95", "95th percentile latency", "p95", "p95_ms", 95),
        _latency("latency_p99", "99th percentile latency", "p99", "p99_ms", 99),
        Metric(
            "cpu_per_operation", "CPU time per operation", "CPU/op", "µs",
            derived=cpu_per_operation_us, derived_column=cpu_per_operation_column,
        ),
        Metric(
            "io_per_operation", "block I/O per operation", "I/O/op", "KiB",
            derived=io_per_operation_kib, derived_column=io_per_operation_column, source=io_source,
        ),
    )
}  # fmt: skip
"""Metrics in the order of reports; the first is the primary metric."""

MONITOR_CPU = Metric("monitor_cpu", "CPU time of monitors", "monitors", "ms/s", derived=monitor_cpu_ms_per_s)
"""Metric that applies only to studies whose arms have different monitors."""

_PERCENTS = tuple(sorted({metric.percent for metric in METRICS.values() if metric.percent is not None}))
_PER_OPERATION = tuple(name for name, metric in METRICS.items() if metric.path[:1] == ("latency",))


def metric_named(name: str) -> Metric:
    """Metric by name: one of `METRICS`, `monitor_cpu`, or of one kind of operation, such as `read_latency_mean`.

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
    """Make a latency metric of one kind of operation."""
    return replace(
        metric,
        name=f"{operation}_{metric.name}",
        title=f"{metric.title} of {operation}",
        short=f"{operation} {metric.short}",
        path=("by_operation", operation, *metric.path),
        operation=operation,
    )


def _only_by_operation(measurement: Mapping[str, Any] | None) -> bool:
    """Whether latency is known by kind only, as in tables from elsewhere."""
    figures = measurement or {}
    return bool(figures.get("by_operation")) and all(
        value is None for value in (figures.get("latency") or {}).values()
    )


def differently_watched(runs: Iterable[RunRecord]) -> bool:
    """Whether these runs were watched by different monitors, or at different rates."""
    monitors = [run.settings.get("monitors") or {} for run in runs]
    return any(one != monitors[0] for one in monitors)


def metrics_of(runs: Iterable[RunRecord]) -> tuple[Metric, ...]:
    """Metrics that these runs allow: `METRICS`, cost of monitors if they differ, and latencies by operation.

    Latencies by operation are included if there are several kinds, or if latency is known by kind only.
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
    """Relative width of the histogram bucket of a latency, such as 0.018 for sysbench."""
    return number_at(measurement, metric.resolution)
