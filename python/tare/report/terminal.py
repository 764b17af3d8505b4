"""The report for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from tare.plural import counted
from tare.report.arm_cell import ArmCell
from tare.report.content import Report
from tare.report.figures import WITHIN_RESOLUTION, duration
from tare.report.plain import levels_of, plain
from tare.report.section import Cell, Column, Group, Section
from tare.report.sections.order import chapters
from tare.report.words.notes import LONGEST

_MOST_LINES = 12
"""Most arms that have a line each above the table."""
_SHORTEST_ARM, _LONGEST_ARM = 10, 24
_UNBROKEN_ARM = 18
"""Longest name of an arm that is not wrapped to make room for an optional column."""
_GAP = 2
_STYLES = {"better": "green", "worse": "bold red", "apart": "", "published": "", "": ""}
"""Tone → style; the figures say the same without colour."""


def render(report: Report, *, width: int = 100, colour: bool = False) -> str:
    """Return the report as text of at most `width` columns; `colour`: with escape sequences."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, color_system=system)
    study = report.study
    console.print(Text(f"{plain(study.name, 80)} at scale {plain(study.scale, 40)}", style="bold"))
    console.print(Text(plain(study.question, 400)))
    for headline in report.headlines:
        console.print(Text(headline.text, style=headline.style))
    console.print()
    _answer(report, console)
    for chapter in chapters(report, "terminal"):
        for section in (chapter.head, *chapter.parts):
            marked = WITHIN_RESOLUTION in out.getvalue()
            console.print(Text(section.title, style="bold"))
            for part in _parts(section, console, marked=marked):
                console.print(part)
            console.print()
    console.print(Text(_took(report), style="dim"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _answer(report: Report, console: Console) -> None:
    """Print a line for each arm; a sentence where no arm has an interval or there are many arms."""
    if not report.answered or len(report.arm_lines) > _MOST_LINES:
        console.print(Text(report.answer))
    else:
        lines = Table.grid(padding=(0, 2, 0, 0))
        lines.add_column(min_width=_SHORTEST_ARM, max_width=_LONGEST_ARM)
        for arm, phrase in report.arm_lines:
            lines.add_row(ArmCell(arm), Text(phrase))
        console.print(Text(report.answer_head))
        console.print(lines)
    console.print()


def _parts(section: Section, console: Console, *, marked: bool) -> Iterator[RenderableType]:
    """Yield what is beneath the title. `marked`: a figure above bears the mark that a note explains."""
    yield from (Text(line) for line in section.lead)
    yield from (_item(item) for item in section.items if marked or not item.startswith(WITHIN_RESOLUTION))
    columns, groups = section.table("terminal")
    if columns and groups:
        yield from _tables(section, columns, groups, console.width)
    yield from (Text(line, style="dim") for line in section.note)


def _item(words: str) -> Table:
    """Make a list item with a hanging indent."""
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(Text("*"), Text(plain(words, LONGEST)))
    return row


@dataclass(frozen=True)
class _Shown:
    """A column of the terminal: a section's column, or the intervals of one. `at`: its place in the section."""

    at: int
    column: Column
    intervals: bool = False

    @property
    def optional(self) -> int:
        """Rank among the columns that a narrow terminal leaves out."""
        column = self.column
        return max(column.optional, column.optional_interval) if self.intervals else column.optional

    def title(self, *, brief: bool) -> str:
        """Return the heading."""
        if self.intervals:
            return "95 % interval"
        return plain(self.column.brief if brief and self.column.brief else self.column.title, 40)

    def cell(self, row: Sequence[Cell]) -> Text:
        """Return the text of a row."""
        cell = row[self.at]
        return Text(cell.interval) if self.intervals else Text(cell.text, style=_STYLES[cell.tone])


def _tables(
    section: Section, columns: Sequence[Column], groups: Sequence[Group], width: int
) -> Iterator[RenderableType]:
    """Yield the table with as many columns as there is room for, or one for each group with a long title."""
    shown = [_Shown(n, column) for n, column in enumerate(columns)]
    for n in reversed(range(len(columns))):
        if any(row[n].interval for group in groups for row in group.rows):
            shown.insert(n + 1, _Shown(n, columns[n], intervals=True))
    apart = any(len(group.title) > _LONGEST_ARM for group in groups)
    for part in [(group,) for group in groups] if apart else [groups]:
        if apart:
            yield Text(part[0].title, style="bold")
            part = [Group("", part[0].rows)]  # noqa: PLW2901 - its title stands above
        fitting = _fitting(shown, part, width)
        beside = section.abreast or len(fitting)
        for first in range(1, max(2, len(fitting)), beside):
            chosen = [fitting[0], *fitting[first : first + beside]]
            yield _table(chosen, part, brief=len(fitting) < len(shown))


def _fitting(shown: Sequence[_Shown], groups: Sequence[Group], width: int) -> Sequence[_Shown]:
    """Leave out optional columns until the rest has room."""
    for most in range(max(one.optional for one in shown), -1, -1):
        fitting = [one for one in shown if one.optional <= most]
        if _needed(fitting, groups, brief=len(fitting) < len(shown)) <= width:
            break
    return fitting


def _needed(shown: Sequence[_Shown], groups: Sequence[Group], *, brief: bool) -> int:
    """Return the width of a table whose long names of arms are wrapped."""
    rows = [row for group in groups for row in group.rows]
    names = [row[shown[0].at].text for row in rows]
    parts = max(cell_len(part) for name in names for part in levels_of(name) or [""])
    first = max(_SHORTEST_ARM, parts, min(_UNBROKEN_ARM, max(map(cell_len, names))))
    widths = [
        max(cell_len(text) for text in (one.title(brief=brief), *(one.cell(row).plain for row in rows)))
        for one in shown[1:]
    ]
    return first + sum(_GAP + width for width in widths)


def _table(shown: Sequence[_Shown], groups: Sequence[Group], *, brief: bool) -> Table:
    """Make a table; a group's title stands above its rows, which are indented."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for n, one in enumerate(shown):
        if n == 0:
            table.add_column(one.title(brief=brief), min_width=_SHORTEST_ARM, max_width=_LONGEST_ARM)
        else:
            left = one.intervals or one.column.left
            table.add_column(one.title(brief=brief), no_wrap=True, justify="left" if left else "right")
    for group in groups:
        if group.title:
            table.add_row(Text(group.title, style="dim"))
        for row in group.rows:
            name = row[shown[0].at].text
            first = Text(f"  {name}") if group.title else ArmCell(name)
            table.add_row(first, *(one.cell(row) for one in shown[1:]))
    return table


def _took(report: Report) -> str:
    spent = report.spent
    if report.study.imported:
        return f"{counted(spent.attempts, 'imported run')}."
    return f"{counted(spent.attempts, 'attempt')}, {duration(spent.runs_s)} of machine time."
