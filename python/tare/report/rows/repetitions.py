"""Smallest, largest, mean and standard deviation, as the study's source reports them, beside tare's estimates."""

from __future__ import annotations

from dataclasses import dataclass

from tare.analyze import Analysis
from tare.analyze.arms import ArmSummary
from tare.analyze.metrics import PRIMARY, Metric
from tare.report.content import Report
from tare.report.figures import NONE, amount, interval, percent, point
from tare.report.known import known, known_by_operation
from tare.report.plain import plain

REPETITION_COLUMNS = (
    "arm",
    "n",
    "smallest",
    "largest",
    "mean",
    "std. dev.",
    "of means",
    "overhead",
    "95 % interval",
)
REPETITION_READING = (
    "As the source reports repetitions: over an arm's good runs, with the sample standard deviation; change of "
    "means without an interval. Overhead and interval are tare's estimate."
)
_TITLE = "As published: smallest, largest, mean and standard deviation"


@dataclass(frozen=True)
class Section:
    """One metric: its title with the unit, and a row for each arm with the cells of `REPETITION_COLUMNS`."""

    title: str
    rows: tuple[tuple[str, ...], ...]


def repetitions(report: Report) -> tuple[Section, ...]:
    """Return throughput and mean latencies; nothing if the source does not report repetitions in this form.

    For a kind of operation, only the arms that have it.
    """
    if report.study.published_by != "min-max-mean":
        return ()
    analysis = report.analysis
    of_all, of_one_kind = (
        [metric for metric in group if metric.name == PRIMARY or metric.name.endswith("latency_mean")]
        for group in (known(analysis), known_by_operation(analysis))
    )
    having = {
        metric.name: tuple(arm for arm in analysis.arms if arm.values[metric.name].n) for metric in of_one_kind
    }
    return tuple(
        Section(
            _title(metric, analysis),
            tuple(_row(analysis, arm, metric) for arm in having.get(metric.name, analysis.arms)),
        )
        for metric in (*of_all, *of_one_kind)
    )


def _title(metric: Metric, analysis: Analysis) -> str:
    counted = next((arm.unit for arm in analysis.arms if arm.unit), "operations")
    unit = f"{plain(counted, 20)}/s" if metric.name == PRIMARY else metric.unit
    return f"{_TITLE} of {metric.title}, {unit}"


def _row(analysis: Analysis, arm: ArmSummary, metric: Metric) -> tuple[str, ...]:
    level = arm.values[metric.name]
    figures = (level.smallest, level.largest, level.mean, level.stddev)
    first = (plain(arm.arm, 80), str(level.n), *(amount(value) for value in figures))
    if arm.is_baseline:
        return (*first, "", "baseline", "")
    finding = analysis.finding(arm.arm, metric.name)
    theirs = NONE if finding.as_published is None else percent(finding.as_published.point)
    return (*first, theirs, point(finding), interval(finding.estimate))
