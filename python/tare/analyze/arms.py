"""Absolute results of each arm, in the metric's own unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType

from tare.analyze.bottleneck import Bottleneck, bottleneck_of
from tare.analyze.climb import Climb, climb_of, has_climbed
from tare.analyze.latency_split import (
    LatencySplit,
    Missed,
    has_details,
    has_latency_parts,
    latency_split_of,
    missed_of,
)
from tare.analyze.metrics import Metric
from tare.analyze.published import min_max_mean
from tare.analyze.runs import Runs
from tare.record.emulated import emulated_arms
from tare.record.observation import Side
from tare.record.run_record import RunRecord
from tare.study.model import Arm, Published, Study


@dataclass(frozen=True)
class Level:
    """A metric over an arm's good runs, in its own unit. `stddev`: of the sample (n - 1); `None` for one run."""

    metric: str
    n: int
    median: float | None
    smallest: float | None
    largest: float | None
    mean: float | None
    stddev: float | None
    published: float | None
    published_unit: str | None


@dataclass(frozen=True)
class ArmSummary:
    """An arm's absolute values. `good`, `attempted`: numbers of runs; `unit`: what throughput counts."""

    arm: str
    levels: Mapping[str, str]
    is_baseline: bool
    good: int
    attempted: int
    unit: str | None
    values: Mapping[str, Level]
    """Metric → its values over the arm's runs."""
    limits: Bottleneck
    """What limited the rate of the arm's runs."""
    emulated: tuple[Side, ...] = ()
    """Sides of the arm that ran on an emulated CPU."""
    latency_split: Mapping[str, LatencySplit] = field(default_factory=dict)
    """Percentile → parts of the latency around it; empty if the generator does not measure parts."""
    missed: Missed | None = None
    """Arrivals that were never sent; `None` for a closed loop."""
    climb: Climb | None = None
    """Latency by rate; `None` if the runs did not search for a sustainable rate."""


def summarise(study: Study, runs: Runs, metrics: Sequence[Metric]) -> tuple[ArmSummary, ...]:
    """Summarise every arm, in the study's order, including the baseline."""
    return tuple(_summary(study, runs, arm, metrics) for arm in study.arms)


def _summary(study: Study, runs: Runs, arm: Arm, metrics: Sequence[Metric]) -> ArmSummary:
    good = runs.of_arm(arm.name)
    units = (run.measurement.unit for run in good if run.measurement is not None)
    return ArmSummary(
        arm=arm.name,
        levels=arm.levels,
        is_baseline=arm.name == study.baseline_of(arm.name),
        good=len(good),
        attempted=runs.attempted_of[arm.name],
        unit=next((str(unit) for unit in units if unit), None),
        values={
            metric.name: _level(metric, runs.values_of(arm.name, metric), figure_of(study, arm, metric))
            for metric in metrics
        },
        limits=bottleneck_of(runs.columns, runs.rows(arm.name)),
        emulated=emulated_arms(good).get(arm.name, ()),
        latency_split=latency_split_of(_runs_where(runs, arm, has_latency_parts)),
        missed=missed_of(_runs_where(runs, arm, has_details)),
        climb=climb_of(_runs_where(runs, arm, has_climbed)),
    )


def _runs_where(runs: Runs, arm: Arm, which: Callable[[RunRecord], bool]) -> list[RunRecord]:
    """Good runs of an arm for which `which` holds; `Columns` evaluates it once for all of 100,000 runs."""
    rows = runs.rows(arm.name)
    return [runs.columns.records[row] for row in rows[runs.columns.where(which)[rows]]]


def _level(metric: Metric, values: list[float], figure: Published | None) -> Level:
    repetitions = min_max_mean(values)
    return Level(
        metric=metric.name,
        n=len(values),
        median=median(values) if values else None,
        smallest=None if repetitions is None else repetitions.smallest,
        largest=None if repetitions is None else repetitions.largest,
        mean=None if repetitions is None else repetitions.mean,
        stddev=None if repetitions is None else repetitions.stddev,
        published=None if figure is None else figure.value,
        published_unit=None if figure is None else figure.unit,
    )


def figure_of(
    study: Study, arm: Arm, metric: Metric, stratum: Mapping[str, str] = MappingProxyType({})
) -> Published | None:
    """Published figure of an arm in a metric; the control has none, though it has the baseline's levels."""
    if arm.control:
        return None
    figures = (each for each in study.published if dict(each.levels) == {**arm.levels, **stratum})
    return next((each for each in figures if each.metric == metric.name), None)
