"""A check for a terminal, and for a job's log."""

from __future__ import annotations

import io
from typing import Literal

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tare.analyze.overhead_limit import Outcome
from tare.report.arm_cell import ArmCell
from tare.report.check.content import READING, Check, figures, in_words, title, widened
from tare.report.plain import plain

_STYLES = {
    Outcome.PASS: "green",
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.TOO_NOISY: "yellow",
}


def render(check: Check, *, width: int = 100, colour: bool = False) -> str:
    """Return the check as text of at most `width` columns; `colour`: with escape sequences."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, color_system=system)
    study = check.study
    console.print(Text(f"{plain(study.name, 80)} at scale {plain(study.scale, 40)}", style="bold"))
    for headline in check.headlines:
        console.print(Text(headline.text, style=headline.style))
    for metric in check.metrics:
        console.print()
        limit = title(check, metric)
        by = widened(check, metric)
        console.print(Text(limit if by is None else f"{limit}; intervals {by}"))
        console.print(_table(check, metric))
    console.print()
    console.print(Text(check.sentence, style=_STYLES[check.outcome]))
    for note in check.notes:
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(Text("*"), Text(plain(note, 600)))
        console.print(row)
    console.print(Text(READING, style="dim"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(check: Check, metric: str) -> Table:
    columns = (
        Column("arm", max_width=32),
        Column("n", justify="right", no_wrap=True),
        Column("overhead", justify="right", no_wrap=True),
        Column("95 % interval", no_wrap=True),
        Column("", overflow="fold"),
    )
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for one in (each for each in check.checks if each.metric == metric):
        point, bounds = figures(one)
        words = Text(in_words(one), style=_STYLES[one.outcome])
        table.add_row(ArmCell(one.arm), str(one.n), point, Text(bounds), words)
    return table
