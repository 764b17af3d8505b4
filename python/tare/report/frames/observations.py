"""Every metric of every good run, one row each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import polars as pl

from tare.analyze.metrics import PRIMARY, Metric, metrics_of, resolution_of
from tare.analyze.runs import select_runs
from tare.record.run_record import Phase, RunRecord
from tare.report.frames.estimates import factor_cells, factor_columns
from tare.study.model import Study

COLUMNS: dict[str, type[pl.DataType] | pl.DataType] = {
    "study": pl.String, "scale": pl.String, "block": pl.Int64, "position": pl.Int64, "index": pl.Int64,
    "run_id": pl.String, "attempt": pl.Int64, "began_at": pl.Datetime("us", "UTC"), "measured_s": pl.Float64,
    "arm": pl.String, "baseline": pl.String, "is_baseline": pl.Boolean, "control": pl.Boolean,
    "metric": pl.String, "value": pl.Float64, "unit": pl.String, "resolution": pl.Float64,
    "emulated": pl.Boolean, "site": pl.String,
}  # fmt: skip
"""Columns beside those of the factors; docs/reference/python.md documents each."""


def observations(study: Study, records: Iterable[RunRecord]) -> pl.DataFrame:
    """Return good runs in the plan's order, each in every metric; `value` is null if unknown.

    Failed attempts are not observations: they have no row.
    """
    runs = select_runs(study, records)
    good = sorted(runs.good.values(), key=lambda run: run.index)
    metrics = metrics_of(good)
    rows = [row for run in good for row in _rows(study, run, metrics)]
    return pl.DataFrame(rows, schema={**COLUMNS, **factor_columns(study)}, orient="row")


def _rows(study: Study, run: RunRecord, metrics: Sequence[Metric]) -> Iterator[list[object]]:
    baseline = study.baseline_of(run.arm)
    control = next(arm.control for arm in study.arms if arm.name == run.arm)
    began, seconds = _measured(run)
    for metric in metrics:
        yield [
            study.name,
            study.scale,
            run.block,
            run.position,
            run.index,
            run.run_id,
            run.attempt,
            began,
            seconds,
            run.arm,
            baseline,
            run.arm == baseline,
            control,
            metric.name,
            metric.of(run),
            _unit(run, metric),
            resolution_of(run.measurement, metric) if metric.bucketed else None,
            bool(run.emulated),
            run.site,
            *factor_cells(study, run.levels),
        ]


def _measured(run: RunRecord) -> tuple[datetime | None, float | None]:
    """Return when the run's measure phase began, and its seconds; `None` for imported runs."""
    for time in run.phases:
        if time.phase is Phase.MEASURE:
            return datetime.fromtimestamp(time.began_at, UTC), time.seconds
    return None, None


def _unit(run: RunRecord, metric: Metric) -> str:
    """Return the metric's unit; throughput counts what the generator counts."""
    counted = run.measurement and run.measurement.unit if metric.name == PRIMARY else None
    return f"{counted}{metric.unit}" if counted else metric.unit
