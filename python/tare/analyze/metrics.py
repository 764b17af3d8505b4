"""Metrics that are compared: names, paths of their values in a measurement, and the meaning of their sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tare.analyze.columns import Column, Columns, Flags
from tare.analyze.derived import DERIVATIONS, Derivation, monitor_cpu_ms_per_s
from tare.analyze.numbers import number_at
from tare.analyze.statistics.histogram import percentile_of
from tare.record.measurement import Latency, Measurement, Operation
from tare.record.run_record import RunRecord
from tare.study.metrics import LATENCIES, SPECS

PRIMARY = next(iter(SPECS))


@dataclass(frozen=True)
class Metric:
    """One number of each run: the value at `path` in its measurement, or a derived value; see `MetricSpec`."""

    name: str
    title: str
    short: str
    unit: str
    path: tuple[str, ...] = ()
    more_is_better: bool = False
    derivation: Derivation | None = None
    """Function of the whole record, for values that the generator does not report."""
    operation: str | None = None
    """Kind of operation; `None` for all kinds together."""
    percent: float | None = None
    """Percentile of the stored histogram; `None` for other values."""

    @property
    def source(self) -> Callable[[RunRecord], str | None] | None:
        """Source that counted the value, if that differs between runs."""
        return None if self.derivation is None else self.derivation.source

    @property
    def bucketed(self) -> bool:
        """Whether the value comes from the generator's histogram, so that its precision is one bucket."""
        return self.percent is not None

    @property
    def resolution(self) -> tuple[str, ...]:
        """Path of the relative width of the histogram's buckets."""
        return (*self.path[:-1], "resolution")

    def of(self, run: RunRecord) -> float | None:
        """Value of a run; `None` if unknown."""
        return self.read(run.measurement) if self.derivation is None else self.derivation.of(run)

    def column(self, columns: Columns) -> Column:
        """Values of many runs, as `of` gives them."""
        if self.derivation is not None:
            return self.derivation.column_of(columns)
        values = columns.number("measurement", *self.path)
        if self.percent is None:
            return values
        above = self.path[:-2]
        counted = columns.once(("percentiles", *above), lambda: _counted(columns.trees("measurement", *above)))
        return np.where(counted.there, counted.percentiles[self.percent], values)

    def read(self, measurement: Measurement | None) -> float | None:
        """Value in a measurement; `None` if the generator did not report it.

        A percentile is counted from the stored histograms; the generator's own figure is used only if there are
        none.
        """
        if measurement is not None and self.percent is not None:
            part = measurement if self.operation is None else measurement.by_operation.get(self.operation)
            if part is not None and part.histogram:
                return percentile_of(part, self.percent)
        return number_at(measurement, self.path)


@dataclass(frozen=True)
class _Counted:
    """Percentiles of many runs, counted from histograms. `there`: which runs have histograms."""

    there: Flags
    percentiles: Mapping[float, Column]


def _counted(parts: Sequence[Measurement | Operation | None]) -> _Counted:
    there = np.zeros(len(parts), dtype=bool)
    columns = {percent: np.full(len(parts), np.nan) for percent in _PERCENTS}
    for row, part in enumerate(parts):
        if part is None or not part.histogram:
            continue
        there[row] = True
        for percent in _PERCENTS:
            value = percentile_of(part, percent)
            columns[percent][row] = math.nan if value is None else value
    return _Counted(there, columns)


METRICS: Mapping[str, Metric] = {
    name: Metric(
        name,
        spec.title,
        spec.short,
        spec.unit,
        spec.path,
        more_is_better=spec.more_is_better,
        percent=spec.percent,
        derivation=DERIVATIONS.get(name),
    )
    for name, spec in SPECS.items()
}
"""Metrics in the order of reports; the first is the primary metric."""

MONITOR_CPU = Metric(
    "monitor_cpu", "CPU time of monitors", "monitors", "ms/s", derivation=Derivation(monitor_cpu_ms_per_s)
)
"""Metric that applies only to studies whose arms have different monitors."""

_PERCENTS = tuple(sorted({metric.percent for metric in METRICS.values() if metric.percent is not None}))


def metric_named(name: str) -> Metric:
    """Metric by name: one of `METRICS`, `monitor_cpu`, or of one kind of operation, such as `read_latency_mean`.

    Raises `KeyError` for any other name.
    """
    if name in METRICS:
        return METRICS[name]
    if name == MONITOR_CPU.name:
        return MONITOR_CPU
    for whole in LATENCIES:
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


def _only_by_operation(measurement: Measurement | None) -> bool:
    """Whether latency is known by kind only, as in tables from elsewhere."""
    return measurement is not None and bool(measurement.by_operation) and measurement.latency == Latency()


def differently_watched(runs: Iterable[RunRecord]) -> bool:
    """Whether these runs were watched by different monitors, or at different rates."""
    monitors = [run.settings.get("monitors") or {} for run in runs]
    return any(one != monitors[0] for one in monitors)


def metrics_of(runs: Iterable[RunRecord]) -> tuple[Metric, ...]:
    """Metrics that these runs allow: `METRICS`, cost of monitors if they differ, and latencies by operation.

    Latencies by operation are included if there are several kinds, or if latency is known by kind only.
    """
    runs = tuple(runs)
    kinds = dict.fromkeys(kind for run in runs if run.measurement for kind in run.measurement.by_operation)
    apart = len(kinds) > 1 or any(_only_by_operation(run.measurement) for run in runs)
    names = sorted(kinds) if apart else ()
    return (
        *METRICS.values(),
        *([MONITOR_CPU] if differently_watched(runs) else []),
        *(of_operation(METRICS[name], kind) for kind in names for name in LATENCIES),
    )


def resolution_of(measurement: Measurement | None, metric: Metric) -> float | None:
    """Relative width of the histogram bucket of a latency, such as 0.018 for sysbench."""
    return number_at(measurement, metric.resolution)
