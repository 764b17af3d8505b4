"""Monitors' views of one run: CPU, memory and disk of each node, and CPU of each host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tare.report.content import Report
from tare.report.plain import plain
from tare.report.section import MARKDOWN, PAGES, Cell, Column, Remark, Section

if TYPE_CHECKING:
    from tare.analyze.views.summary import Line, RunViews

_ALL = "all"
"""Subject of figures over all CPUs of a host."""
_READING = (
    "If the tool itself ran, the view uses its sampling times, and its figure should lie in the range that the "
    "uncertainty of these times allows."
)


def views(report: Report) -> Iterator[Section]:
    """Yield the figures of each monitor, and why they differ; `tare views` has the rest."""
    run = report.views
    if run is None:
        return
    rows = tuple((title, *_row(line)) for title, lines in groups(run) for line in lines)
    compared = any(line.real is not None for _, lines in groups(run) for line in lines)
    columns = (
        Column("of", left=True),
        Column("monitor", left=True),
        Column("shows", left=True, formats=MARKDOWN),
        Column("view"),
        Column("resolution"),
        Column("real tool", formats=PAGES if compared else frozenset()),
        Column("should be in", formats=PAGES if compared else frozenset()),
    )
    lead = (
        f"One run as several monitors see it: {plain(run.arm, 60)}, run {plain(run.run_id, 60)}. Each figure is "
        "computed from the same counters, which tare-probe read during the measure phase, by the formula of that "
        "tool."
    )
    note = (_READING,) if compared else ()
    yield Section(
        "views", "Monitors\N{RIGHT SINGLE QUOTATION MARK} views", columns, rows, note,
        lead=(lead,), grouped=True, closed=True, formats=PAGES,
    )  # fmt: skip
    yield Section("why", "Why they differ", items=run.views.why, under=True, formats=PAGES)


def groups(run: RunViews) -> Iterator[tuple[str, list[Line]]]:
    """Yield each question with the lines that answer it."""
    from tare.analyze.views.model import Measure  # polars is slow to import

    hosts = run.views.hosts
    wholes = {_ALL: "", **{f"{_ALL} of {side}": on for side, on in hosts.items()}}
    if len(wholes) > 1:
        wholes[_ALL] = next(iter(hosts.values()))
    for measure in (
        Measure.CONTAINER_CPU,
        Measure.HOST_CPU,
        Measure.CONTAINER_MEMORY,
        Measure.CONTAINER_READ,
        Measure.CONTAINER_WRITTEN,
    ):
        for subject in (*run.of_sut, *wholes):
            found = [line for line in run.views.lines if line.measure is measure and line.subject == subject]
            lines = [line for line in found if measure is not Measure.HOST_CPU or line.figures.most]
            if not lines:
                continue
            if subject in wholes:
                yield f"{measure}: {wholes[subject]}" if wholes[subject] else str(measure), lines
            else:
                yield f"{measure}: {subject}{f' on {hosts[subject]}' if subject in hosts else ''}", lines


def _row(line: Line) -> tuple[object, ...]:
    from tare.analyze.views.model import Kind
    from tare.report.views.table import quantity

    real, unit = line.real, line.quantity.unit
    value = line.figures.value if real is None else real.view
    grew = " more" if line.quantity.kind is Kind.TOTAL else ""
    return (
        Cell(plain(line.view.tool, 40), remarks=(Remark(plain(line.quantity.shown, 80)),)),
        line.quantity.shown,
        "nothing" if value is None else f"{_with_unit(value, unit)}{grew}",
        _with_unit(line.resolution, unit),
        "" if real is None else Cell(_with_unit(real.real, unit), tone="" if real.agrees else "worse"),
        "" if real is None else f"{quantity(real.low, unit)} to {quantity(real.high, unit)}",
    )


def _with_unit(value: float, unit: str) -> str:
    from tare.report.views.table import quantity

    return quantity(value, unit) if unit == "B" else f"{quantity(value, unit)} {unit}"
