"""Runs that can be laid over each other, as rows of text, and the style by which a page hides those not chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tare.analyze.timelines.laid_over import Laid, LaidOver
from tare.analyze.timelines.marks import Mark
from tare.report.charts.laid_over import PANELS, colours, mean
from tare.report.figures import amount
from tare.report.plain import plain

_MOST_MARKS = 8
"""Of one run, in words."""


@dataclass(frozen=True)
class LaidRow:
    """`number`: the run's place in the chart; `cells`: means while measuring, one for each of `PANELS`."""

    number: int
    run_id: str
    block: int
    shown: bool
    cells: tuple[str, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True)
class LaidArm:
    """An arm's runs and the name of its colour."""

    arm: str
    colour: str
    rows: tuple[LaidRow, ...]


def laid_rows(over: LaidOver | None) -> tuple[LaidArm, ...]:
    """Arms in the study's order."""
    runs = () if over is None else over.runs
    hues = colours(runs)
    rows = [(run.arm, _row(n, run)) for n, run in enumerate(runs)]
    return tuple(
        LaidArm(plain(arm, 60), hue, tuple(row for name, row in rows if name == arm)) for arm, hue in hues.items()
    )


def hiding(over: LaidOver | None) -> str:
    """A rule a run: it is gone while its box is not ticked. Needs no script; without :has() all are shown."""
    return "".join(
        f".laid:has(#pick-{n}:not(:checked)) .run-{n} {{ display: none; }}\n"
        for n in range(0 if over is None else len(over.runs))
    )


def _row(number: int, run: Laid) -> LaidRow:
    cells = tuple(amount(mean(run, panel)) for panel in PANELS)
    return LaidRow(number, plain(run.run_id, 80), run.block, run.shown, cells, _told(run.marks))


def _told(marks: Sequence[Mark]) -> tuple[str, ...]:
    told = [
        f"{mark.second:g}{'' if mark.until is None else f' to {mark.until:g}'} s, {plain(mark.text, 160)}"
        for mark in marks[:_MOST_MARKS]
    ]
    return (*told, f"{len(marks) - _MOST_MARKS} more") if len(marks) > _MOST_MARKS else tuple(told)
