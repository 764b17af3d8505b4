"""Overlaid runs: a row for each, and the style that hides runs which are not selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.plural import counted
from tare.report.content import Report
from tare.report.figures import amount
from tare.report.plain import plain
from tare.report.section import MARKDOWN, PAGE, PAGES, Cell, Column, Remark, Section
from tare.report.words.marks import mark_lines

if TYPE_CHECKING:
    from tare.analyze.timelines.runs import OverlaidRun, RunOverlay

_PLACED: Mapping[str | None, str] = {
    "generator": "from the start of measurement that it reports",
    "end": (
        "placed by its end: it does not report its start, so its seconds are assumed to end with the phase; it "
        "is late by the time that it took to end"
    ),
    None: "by its own clock: a slow start, such as a JVM's, puts it ahead of the trace",
}
"""How a generator's start is known → its explanation."""
COLOURS = ("ink", *(f"c{n}" for n in range(1, 9)))
"""Colours of arms in the study's order, with the ink for the first; after the last they repeat, without the ink."""


def panels() -> tuple[str, ...]:
    """Return the titles of the chart's panels."""
    from tare.analyze.timelines.runs import LATENCY, THROUGHPUT  # polars is slow to import
    from tare.analyze.timelines.series import CPU, MEMORY, NETWORK, READ, WRITTEN

    return (THROUGHPUT, LATENCY, CPU, MEMORY, WRITTEN, READ, NETWORK)


def runs(report: Report) -> Iterator[Section]:
    """Yield the means of each run while measuring, with what happened in it, by arm; nothing without runs."""
    over = report.laid_over
    if over is None or not over.runs:
        return
    columns = (
        Column("arm", left=True),
        Column("run", left=True),
        *(Column(panel, amount) for panel in panels()),
        Column("what happened", left=True, formats=MARKDOWN),
    )
    rows = tuple(_row(run) for arm in colours(over.runs) for run in over.runs if run.arm == arm)
    yield Section(
        "runs", "Overlaid runs", columns, rows, ("Means while measuring.",),
        grouped=True, fold="Figures and events of these runs", formats=PAGES,
    )  # fmt: skip


def timelines(report: Report) -> Iterator[Section]:
    """Yield the section of the chart of one run of each arm, if there is one."""
    if report.timelines is not None and report.timelines.runs:
        yield Section("timelines", "Over the phases of a run", closed=True, formats=PAGE)


def _row(run: OverlaidRun) -> tuple[object, ...]:
    marks = mark_lines(run.marks)
    name = Cell(plain(run.run_id, 80), remarks=tuple(map(Remark, marks)))
    return (plain(run.arm, 60), name, *(mean(run, panel) for panel in panels()), "; ".join(marks))


@dataclass(frozen=True)
class Pick:
    """A run to show or hide. `number`: its place in the chart."""

    number: int
    block: int
    shown: bool


@dataclass(frozen=True)
class ArmPicks:
    """An arm's runs and the name of its colour."""

    arm: str
    colour: str
    picks: tuple[Pick, ...]


def picks(over: RunOverlay) -> tuple[ArmPicks, ...]:
    """Return what a reader can select, arms in the study's order."""
    return tuple(
        ArmPicks(
            plain(arm, 60),
            colour,
            tuple(Pick(n, run.block, run.shown) for n, run in enumerate(over.runs) if run.arm == arm),
        )
        for arm, colour in colours(over.runs).items()
    )


def placed(over: RunOverlay | None) -> str:
    """Explain how generators' windows are placed, as a clause after "window by window"; empty without any."""
    own = panels()[:2]
    drawn = [run for run in (() if over is None else over.runs) if any(point.panel in own for point in run.points)]
    ways = [way for way in _PLACED if any(run.placed_by == way for run in drawn)]
    if len(ways) == 1:
        return f", {_PLACED[ways[0]]}"
    return "".join(
        f"; of {counted(sum(run.placed_by == way for run in drawn), 'run')} {_PLACED[way]}" for way in ways
    )


def hiding(over: RunOverlay | None) -> str:
    """Return a CSS rule for each run that hides it while its box is not ticked. Without :has(), all are shown."""
    return "".join(
        f"#runs:has(#pick-{n}:not(:checked)) .run-{n} {{ display: none; }}\n"
        for n in range(0 if over is None else len(over.runs))
    )


def colours(runs: Sequence[OverlaidRun]) -> Mapping[str, str]:
    """Arm → name of its colour in the page's style."""
    arms = list(dict.fromkeys(run.arm for run in runs))
    first, *others = COLOURS
    return {arm: first if n == 0 else others[(n - 1) % len(others)] for n, arm in enumerate(arms)}


def means(run: OverlaidRun) -> str:
    """List the means over the measure phase: `throughput, /s 1,905; CPU, cores 0.98`."""
    by_panel = ((panel, mean(run, panel)) for panel in panels())
    return ", ".join(f"{amount(value)} ({panel})" for panel, value in by_panel if value is not None)


def mean(run: OverlaidRun, panel: str) -> float | None:
    """Return the mean of a panel's line over the measure phase; `None` without values."""
    measure = next((span for span in run.phases if span.phase == "measure"), None)
    values = [
        point.value
        for point in run.points
        if point.panel == panel and (measure is None or measure.began <= point.second <= measure.ended)
    ]
    return sum(values) / len(values) if values else None
