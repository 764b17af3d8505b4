"""What is compared: each metric's name, where its value stands in a measurement, and how to read its sign."""

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
    """One number of each run: what stands at `path` in its measurement, or what is `derived`.

    `path`: keys from the top of the JSON of `workloads.Measurement`. `bucketed`: read from the generator's
    histogram, and so known to one bucket at best.
    """

    name: str
    title: str
    short: str
    unit: str
    path: tuple[str, ...] = ()
    more_is_better: bool = False
    bucketed: bool = False
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
        """The values of many runs, each as by `of`."""
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
"""In the order in which reports show them; the first is the primary metric."""

MONITOR_CPU = Metric("monitor_cpu", "CPU time of monitors", "monitors", "ms/s", derived=monitor_cpu_ms_per_s)
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


def differently_watched(runs: Iterable[RunRecord]) -> bool:
    """Whether these runs were watched by different monitors, or at different rates."""
    monitors = [run.settings.get("monitors") or {} for run in runs]
    return any(one != monitors[0] for one in monitors)


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
