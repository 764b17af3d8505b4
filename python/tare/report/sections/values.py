"""The absolute figures of each arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.analyze.arms import ArmSummary, Level
from tare.analyze.metrics import PRIMARY, Metric
from tare.report.content import Report
from tare.report.figures import amount
from tare.report.known import known, known_by_operation
from tare.report.plain import plain
from tare.report.section import PAGES, Cell, Column, Remark, Section, arm

_READING = (
    "Median over an arm's good runs, on a page with the smallest and the largest beneath it. Absolute figures "
    "apply only to this machine; use relative figures elsewhere."
)


def values(report: Report) -> Iterator[Section]:
    """Yield the medians of every metric, those of single kinds of operations in a table of their own."""
    unit = next((each.unit for each in report.analysis.arms if each.unit), "operations")
    yield Section(
        "values", "In absolute figures", *_table(report, known(report.analysis), unit), (_READING,), formats=PAGES
    )
    if metrics := known_by_operation(report.analysis):
        title = "By kind of operation, in absolute figures"
        yield Section("values-by-operation", title, *_table(report, metrics, unit), under=True, formats=PAGES)


def _table(
    report: Report, metrics: Sequence[Metric], unit: str
) -> tuple[tuple[Column, ...], tuple[tuple[object, ...], ...]]:
    units = (f"{plain(unit, 30)}/s" if metric.name == PRIMARY else metric.unit for metric in metrics)
    columns = (
        arm(),
        Column("good runs"),
        *(Column(metric.short, _level, unit=each) for metric, each in zip(metrics, units, strict=True)),
    )
    return columns, tuple(_row(each, metrics) for each in report.analysis.arms)


def _row(each: ArmSummary, metrics: Sequence[Metric]) -> tuple[object, ...]:
    remarks = (Remark("baseline"),) if each.is_baseline else ()
    name = Cell(plain(each.arm, 60), remarks=remarks)
    return (name, each.good, *(each.values[metric.name] for metric in metrics))


def _level(level: Level) -> Cell:
    remarks = []
    if level.n:
        remarks.append(Remark(f"{amount(level.smallest)} to {amount(level.largest)}"))
    if level.published is not None:
        unit = plain(level.published_unit or "", 30)
        remarks.append(Remark(f"published {amount(level.published)} {unit}".rstrip(), "published"))
    return Cell(amount(level.median), remarks=tuple(remarks))
