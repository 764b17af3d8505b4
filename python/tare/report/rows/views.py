"""Monitors' views of a run for a page: a few rows for each question, with figures as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tare.analyze.views.model import Kind, Measure
from tare.analyze.views.summary import Line, RunViews
from tare.report.views.table import quantity

_SHOWN = (
    Measure.CONTAINER_CPU,
    Measure.HOST_CPU,
    Measure.CONTAINER_MEMORY,
    Measure.CONTAINER_READ,
    Measure.CONTAINER_WRITTEN,
)
_ALL = "all"
"""Subject of figures over all CPUs of a host."""


@dataclass(frozen=True)
class Row:
    """A row of the table; `agrees` is `None` if no real tool ran."""

    tool: str
    shown: str
    view: str
    resolution: str
    real: str
    bounds: str
    agrees: bool | None


@dataclass(frozen=True)
class Group:
    """The rows of one question."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Monitors:
    """The section of the page."""

    run_id: str
    arm: str
    nodes: int
    """Nodes of the server with figures; at least 1."""
    interval: str
    compared: bool
    groups: tuple[Group, ...]
    why: tuple[str, ...]


def monitors(run: RunViews) -> Monitors:
    """Select CPU, memory and disk of each node, and CPU of each host; `tare views` has the rest."""
    groups = tuple(group for measure in _SHOWN for group in _groups(run, measure))
    compared = any(row.agrees is not None for group in groups for row in group.rows)
    return Monitors(
        run.run_id, run.arm, max(1, len(run.of_sut)), f"{run.views.interval_s:g} s", compared, groups, run.views.why
    )


def _groups(run: RunViews, measure: Measure) -> Iterator[Group]:
    hosts = run.views.hosts
    wholes = {_ALL: "", **{f"{_ALL} of {side}": on for side, on in hosts.items()}}
    if len(wholes) > 1:
        wholes[_ALL] = next(iter(hosts.values()))
    for subject in (*run.of_sut, *wholes):
        lines = [line for line in run.views.lines if line.measure is measure and line.subject == subject]
        rows = tuple(_row(line) for line in lines if measure is not Measure.HOST_CPU or line.figures.most)
        if not rows:
            continue
        if subject in wholes:
            yield Group(f"{measure}: {wholes[subject]}" if wholes[subject] else str(measure), rows)
        else:
            yield Group(f"{measure}: {subject}{f' on {hosts[subject]}' if subject in hosts else ''}", rows)


def _row(line: Line) -> Row:
    real, unit = line.real, line.quantity.unit
    value = line.figures.value if real is None else real.view
    grew = " more" if line.quantity.kind is Kind.TOTAL else ""
    view = "nothing" if value is None else f"{_with_unit(value, unit)}{grew}"
    return Row(
        tool=line.view.tool,
        shown=line.quantity.shown,
        view=view,
        resolution=_with_unit(line.resolution, unit),
        real="" if real is None else _with_unit(real.real, unit),
        bounds="" if real is None else f"{quantity(real.low, unit)} to {quantity(real.high, unit)}",
        agrees=None if real is None else real.agrees,
    )


def _with_unit(value: float, unit: str) -> str:
    return quantity(value, unit) if unit == "B" else f"{quantity(value, unit)} {unit}"
