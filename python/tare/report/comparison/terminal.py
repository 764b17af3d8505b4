"""A comparison for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Literal

from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from tare.analyze.comparison import Change
from tare.analyze.metrics import PRIMARY, metric_named
from tare.report.arm_cell import ArmCell
from tare.report.comparison.content import (
    READING,
    Compared,
    absolutes,
    changed_elsewhere,
    headlines_of,
    p_value,
    shown_change,
    source,
    verdict,
)
from tare.report.comparison.surroundings import Unlike
from tare.report.figures import amount, interval, percent, point
from tare.report.plain import plain

_WIDE = 110
"""From this width on, each side shows its interval."""
_SHOWN = (PRIMARY, "latency_p95")
_MOST = 12
"""Most differences shown of one group."""


def render(compared: Compared, *, width: int = 100, colour: bool = False) -> str:
    """Return the comparison as text of at most `width` columns; `colour`: with escape sequences."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, color_system=system)
    study = compared.a.study
    console.print(Text(f"{plain(study.name, 80)} at scale {plain(study.scale, 40)}, twice", style="bold"))
    for side, analysis in compared.sides:
        console.print(Text(source(side, analysis)))
    console.print()
    _unlike(console, compared)
    for side, analysis in compared.sides:
        for headline in headlines_of(side, analysis):
            console.print(Text(headline.text, style=headline.style))
    console.print()
    console.print(Text(compared.answer, style="bold"))
    for metric in (name for name in _SHOWN if name in compared.comparison.metrics):
        console.print()
        console.print(Text(f"Overhead: {metric_named(metric).title}"))
        console.print(_table(compared, metric, wide=width >= _WIDE))
    for note in _notes(compared):
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(Text("*"), Text(plain(note, 400)))
        console.print(row)
    console.print()
    unit = plain(next((each.unit for each in absolutes(compared)), ""), 24)
    console.print(
        Text(
            f"Context: median throughput, {unit}. Absolute figures apply only to the machine they were measured on."
        )
    )
    console.print(_absolute(compared))
    console.print()
    console.print(Text(READING, style="dim"))
    if compared.gate is not None:
        console.print()
        for number, line in enumerate(compared.gate.lines()):
            console.print(Text(line, style="bold" if number == 0 else ""))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _unlike(console: Console, compared: Compared) -> None:
    """Print what differs, before anything else."""
    groups: dict[str, list[Unlike]] = {}
    for each in compared.unlike:
        groups.setdefault(each.group, []).append(each)
    console.print(Text("What differs between A and B", style="bold"))
    if not groups:
        console.print(Text(compared.alike))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("", "what", "A", "B"):
        table.add_column(title, overflow="fold")
    for group, entries in groups.items():
        for n, each in enumerate(entries[:_MOST]):
            cells = (group if n == 0 else "", plain(each.name, 60), plain(each.a, 80), plain(each.b, 80))
            table.add_row(*(Text(cell) for cell in cells))
        if len(entries) > _MOST:
            table.add_row("", Text(f"and {len(entries) - _MOST} more: --format json"), "", "")
    if groups:
        console.print(table)
    console.print()


def _table(compared: Compared, metric: str, *, wide: bool) -> Table:
    columns = [
        Column("arm", max_width=24),
        *([Column("n in A, B", justify="right", no_wrap=True)] if wide else []),
        Column("A", justify="right", no_wrap=True),
        *([Column("95 % interval", no_wrap=True)] if wide else []),
        Column("B", justify="right", no_wrap=True),
        *([Column("95 % interval", no_wrap=True)] if wide else []),
        Column("B against A", justify="right", no_wrap=True),
        Column("95 % interval", no_wrap=True),
        *([Column("p", justify="right", no_wrap=True)] if wide else []),
        Column("", overflow="fold"),
    ]
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for change in (each for each in compared.comparison.changes if each.metric == metric):
        table.add_row(*_cells(change, wide=wide))
    return table


def _cells(change: Change, *, wide: bool) -> Iterator[RenderableType]:
    estimate = change.difference.estimate
    better = estimate.point is not None and (estimate.point > 0) == metric_named(change.metric).more_is_better
    style = "" if not change.changed else "green" if better else "bold red"
    yield ArmCell(change.arm)
    if wide:
        yield Text(f"{change.a.estimate.n}, {change.b.estimate.n}")
    for finding in (change.a, change.b):
        yield Text(point(finding))
        if wide:
            yield Text(interval(finding.estimate))
    apart, bounds = shown_change(change)
    yield Text(apart, style=style)
    yield Text(bounds)
    if wide:
        yield Text(p_value(change))
    yield Text(verdict(change), style=style)


def _notes(compared: Compared) -> Iterator[str]:
    for change in changed_elsewhere(compared.comparison, _SHOWN):
        apart, bounds = shown_change(change)
        yield f"Changed too: {metric_named(change.metric).title} of {change.arm}, {apart} ({bounds} %)."
    for label, names in (("A", compared.comparison.shared.only_a), ("B", compared.comparison.shared.only_b)):
        if names:
            yield f"Only in {label}: {', '.join(plain(name, 60) for name in names)}."
    for side in (compared.a, compared.b):
        if side.unfinished is not None:
            yield f"{side.label}: {side.unfinished}. Its figures may still change."


def _absolute(compared: Compared) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("arm", max_width=24)
    for title in ("A", "B", "B against A"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in absolutes(compared):
        table.add_row(ArmCell(each.arm), *map(Text, (amount(each.a), amount(each.b), percent(each.ratio))))
    return table
