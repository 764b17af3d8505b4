"""Views of a trace for a terminal: what each tool would have printed, what the real tool printed, and why."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tare.analyze.views.model import Kind, Measure
from tare.analyze.views.summary import Line, Views
from tare.record.emulated import sides_text
from tare.report.figures import NONE
from tare.report.plain import plain

_FEW = {Measure.HOST_CPU, Measure.HOST_DISK, Measure.HOST_NETWORK, Measure.PROCESS_CPU, Measure.PROCESS_MEMORY,
        Measure.PROCESS_DISK, Measure.CONTAINER_NETWORK}  # fmt: skip
"""Measures whose idle lines are left out unless all lines are requested."""


def render(views: Views, *, width: int = 120, colour: bool = False, everything: bool = False) -> str:
    """Return the views as text of at most `width` columns. `everything`: with single CPUs and lines of zeros."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, color_system=system)
    lines = views.lines if everything else tuple(line for line in views.lines if _tells(line))
    console.print(
        Text(f"{views.seconds:.1f} s of counters, as tools sampling every {views.interval_s:g} s would report them")
    )
    if views.hosts:
        console.print(
            Text(f"Hosts: {', '.join(f'{side} on {plain(on, 60)}' for side, on in views.hosts.items())}.")
        )
    if views.emulated:
        sentence = f"Emulated: the {sides_text(views.emulated)} of this run had an emulated CPU."
        console.print(Text(sentence, style="bold red"))
    if not views.complete:
        console.print(Text("The trace is incomplete: its end or some rows are missing.", style="bold red"))
    if not any(line.quantity.kind is Kind.RATE for line in views.lines):
        console.print(Text("Too short for two samples at this interval: there is no rate.", style="bold red"))
    for (measure, subject), group in _grouped(lines):
        console.print()
        console.print(Text(f"{measure}: {plain(subject, 60)}", style="bold"))
        console.print(_table(group, width))
    console.print()
    console.print(Text("Why they differ", style="bold"))
    _bullets(console, views.why)
    console.print(Text("What they cannot see", style="bold"))
    _bullets(console, [f"{view.title}: {'; '.join(view.blind_to)}." for view in views.tools])
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def quantity(value: float | None, unit: str) -> str:
    """Format a figure: `61.2`, `1,905.3`; bytes with their unit."""
    if value is None:
        return NONE
    if unit == "B":
        return _bytes(value)
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:,.{digits}f}"


def _bytes(value: float) -> str:
    size, unit = value, "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:.2f} {unit}"


def _tells(line: Line) -> bool:
    if line.measure is Measure.HOST_CPU and line.subject.partition(" of ")[0] != "all":
        return False
    return line.measure not in _FEW or line.real is not None or bool(line.figures.most or line.figures.value)


def _grouped(lines: Sequence[Line]) -> list[tuple[tuple[Measure, str], list[Line]]]:
    groups: dict[tuple[Measure, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.measure, line.subject), []).append(line)
    return list(groups.items())


def _table(lines: Sequence[Line], width: int) -> Table:
    compared = any(line.real is not None for line in lines)
    shown = [name for name, column in _COLUMNS.items() if column.shown(lines, width, compared)]
    columns = [
        Column(name, justify=_COLUMNS[name].justify, no_wrap=name != "prints", max_width=_COLUMNS[name].most)
        for name in shown
    ]
    for column in columns:
        column.overflow = "fold"
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for line in lines:
        table.add_row(*(_COLUMNS[name].cell(line) for name in shown))
    return table


Fits = Callable[[Sequence[Line], int, bool], bool]


@dataclass(frozen=True)
class _Column:
    """A column. `shown`: decides from the lines, the terminal's width, and whether a real tool is compared."""

    cell: Callable[[Line], Text]
    shown: Fits = lambda _lines, _width, _compared: True
    justify: Literal["left", "right"] = "right"
    most: int | None = None


def _mean(line: Line) -> float | None:
    """Return the view over a real tool's own samples, if there is one, else over the whole trace."""
    return line.figures.value if line.real is None else line.real.view


def _of_mean(line: Line) -> Text:
    value, unit = _mean(line), line.quantity.unit
    if value is None:
        return Text("nothing")
    grew = " more" if line.quantity.kind is Kind.TOTAL else ""
    return Text(f"{quantity(value, unit)}{'' if unit == 'B' else f' {unit}'}{grew}")


def _of_core(line: Line) -> Text:
    value = _mean(line)
    return Text("" if value is None or line.cores is None else quantity(value * line.cores, "%"))


def _of_spread(line: Line) -> Text:
    least, most, unit = line.figures.least, line.figures.most, line.quantity.unit
    return Text("" if least is None else f"{quantity(least, unit)} to {quantity(most, unit)}")


def _of_real(line: Line) -> Text:
    return Text("" if line.real is None else quantity(line.real.real, line.quantity.unit))


def _of_difference(line: Line) -> Text:
    real = line.real
    if real is None:
        return Text("")
    return Text(quantity(real.difference, line.quantity.unit), "" if real.agrees else "bold red")


def _of_bounds(line: Line) -> Text:
    real, unit = line.real, line.quantity.unit
    if real is None:
        return Text("")
    bounds = f"{quantity(real.low, unit)} to {quantity(real.high, unit)}"
    return Text(bounds) if real.agrees else Text(f"not in {bounds}", "bold red")


_COLUMNS: Mapping[str, _Column] = {
    "tool": _Column(lambda line: Text(line.view.tool), justify="left"),
    "prints": _Column(lambda line: Text(line.quantity.shown), justify="left", most=32),
    "view": _Column(_of_mean),
    "% of 1 CPU": _Column(
        _of_core, lambda lines, width, _: width >= 100 and any(line.cores is not None for line in lines)
    ),
    "least to most": _Column(_of_spread, lambda _, width, compared: width >= (150 if compared else 100)),
    "resolution": _Column(
        lambda line: Text(quantity(line.resolution, line.quantity.unit)), lambda _, width, __: width >= 100
    ),
    "real tool": _Column(_of_real, lambda _, __, compared: compared),
    "less view": _Column(_of_difference, lambda _, __, compared: compared),
    "should be in": _Column(_of_bounds, lambda _, width, compared: compared and width >= 100),
}


def _bullets(console: Console, sentences: Sequence[str]) -> None:
    grid = Table.grid(padding=(0, 1, 0, 0))
    for sentence in sentences:
        grid.add_row(Text("-"), Text(plain(sentence, 1200)))
    console.print(grid)
