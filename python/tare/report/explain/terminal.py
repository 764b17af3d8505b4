"""An explanation for a terminal: the sentence of each arm, then its figures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tare.analyze.explain.explanation import ArmExplanation, Explanation
from tare.analyze.explain.parts import Part
from tare.report.explain.words import (
    LEAST_POINTS,
    READING,
    added,
    added_points,
    notes,
    points,
    sentence,
    total_points,
)
from tare.report.figures import NONE, amount
from tare.report.plain import plain

_SMALLEST = 0.003
"""Share of the baseline's CPU time: parts below it on both sides, with a smaller change, are left out."""
_MOST_ARMS = 5
_LONGEST_ARM = 14


def render(
    explanation: Explanation, arms: Sequence[ArmExplanation], *, width: int = 100, colour: bool = False
) -> str:
    """Render the explanation; one arm in full, several side by side."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, color_system=system)
    for arm in arms:
        console.print(Text(sentence(arm), style="bold"))
    console.print()
    if len(arms) == 1:
        _in_full(console, arms[0])
    else:
        for first in range(0, len(arms), _MOST_ARMS):
            _side_by_side(console, arms[first : first + _MOST_ARMS])
    for note in notes(explanation, arms):
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(Text("*"), Text(plain(note, 400)))
        console.print(row)
    console.print(Text(READING, style="dim"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(*columns: Column) -> Table:
    return Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


def _in_full(console: Console, arm: ArmExplanation) -> None:
    """Print every part, by cause, by side and by both."""
    if arm.total is None:
        return
    table = _table(
        Column("µs an operation", max_width=44, overflow="fold"),
        Column(plain(arm.baseline, _LONGEST_ARM), justify="right", no_wrap=True),
        Column(plain(arm.arm, _LONGEST_ARM), justify="right", no_wrap=True),
        Column("added", no_wrap=True),
        Column("points", justify="right", no_wrap=True),
    )
    groups: list[tuple[str, Sequence[Part]]] = [
        ("CPU time", [arm.total]),
        ("by what it went to", _without_negligible(arm, arm.causes)),
        ("by side", arm.sides),
        (
            "by side and component",
            _without_negligible(arm, sorted(arm.cells, key=lambda part: -part.change.added_us)),
        ),
        ("the engine's daemons and its shims", [] if arm.log_output is None else [arm.log_output]),
        ("waiting", arm.waits),
        ("time of all CPUs", [part for part in (arm.whole, *arm.rest) if part is not None]),
    ]
    for title, parts in groups:
        if not parts:
            continue
        table.add_row(Text(title, style="dim"))
        for part in parts:
            table.add_row(
                Text(f"  {part.title}"),
                amount(part.baseline_us),
                amount(part.us),
                added(part.change),
                points(part, arm),
            )
    console.print(table)
    console.print()
    if arm.counts:
        counts = _table(
            Column("an operation", max_width=44, overflow="fold"),
            Column(plain(arm.baseline, _LONGEST_ARM), justify="right", no_wrap=True),
            Column(plain(arm.arm, _LONGEST_ARM), justify="right", no_wrap=True),
            Column("added", no_wrap=True),
        )
        for part in arm.counts:
            counts.add_row(Text(part.title), amount(part.baseline_us), amount(part.us), added(part.change))
        console.print(counts)
        console.print()


def _without_negligible(arm: ArmExplanation, parts: Sequence[Part]) -> list[Part]:
    """Return the parts without those that are negligible on both sides."""
    least = 0.0 if arm.total is None else _SMALLEST * arm.total.baseline_us
    return [part for part in parts if max(abs(part.change.added_us), part.us, part.baseline_us) >= least]


def _side_by_side(console: Console, arms: Sequence[ArmExplanation]) -> None:
    """Print what each cause adds, in percent of the baseline's CPU time."""
    known = [arm for arm in arms if arm.causes and arm.total is not None]
    if not known:
        return
    titles = dict.fromkeys(part.title for arm in known for part in _without_negligible(arm, arm.causes))
    most = {title: max(abs(added_points(arm, title) or 0.0) for arm in known) for title in titles}
    table = _table(
        Column("points of CPU time", max_width=36, overflow="fold"),
        *(Column(plain(arm.arm, _LONGEST_ARM), justify="right", overflow="fold") for arm in known),
    )
    for title in sorted(titles, key=lambda title: -most[title]):
        if most[title] >= LEAST_POINTS:
            table.add_row(Text(title), *(_cell(added_points(arm, title)) for arm in known))
    table.add_row(Text("all together", style="bold"), *(_cell(total_points(arm)) for arm in known))
    console.print(table)
    console.print()


def _cell(value: float | None) -> str:
    return NONE if value is None else f"{value:+.1f}"
