"""Overlaid runs as rows of text, and the style that hides runs which are not selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.analyze.timelines.runs import LATENCY, THROUGHPUT, OverlaidRun, RunOverlay
from tare.analyze.timelines.series import CPU, MEMORY, NETWORK, READ, WRITTEN
from tare.plural import counted
from tare.report.figures import amount
from tare.report.plain import plain
from tare.report.words.marks import mark_lines

PANELS = (THROUGHPUT, LATENCY, CPU, MEMORY, WRITTEN, READ, NETWORK)
_OWN = (THROUGHPUT, LATENCY)
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


@dataclass(frozen=True)
class LaidRow:
    """One run. `number`: its place in the chart; `cells`: means of the measure phase, one for each of `PANELS`."""

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


def laid_rows(over: RunOverlay | None) -> tuple[LaidArm, ...]:
    """Return the arms in the study's order."""
    runs = () if over is None else over.runs
    hues = colours(runs)
    rows = [(run.arm, _row(n, run)) for n, run in enumerate(runs)]
    return tuple(
        LaidArm(plain(arm, 60), hue, tuple(row for name, row in rows if name == arm)) for arm, hue in hues.items()
    )


def placed(over: RunOverlay | None) -> str:
    """Explain how generators' windows are placed, as a clause after "window by window"; empty without any."""
    drawn = [run for run in (() if over is None else over.runs) if any(point.panel in _OWN for point in run.points)]
    ways = [way for way in _PLACED if any(run.placed_by == way for run in drawn)]
    if len(ways) == 1:
        return f", {_PLACED[ways[0]]}"
    return "".join(
        f"; of {counted(sum(run.placed_by == way for run in drawn), 'run')} {_PLACED[way]}" for way in ways
    )


def hiding(over: RunOverlay | None) -> str:
    """Return a CSS rule for each run that hides it while its box is not ticked. Without :has(), all are shown."""
    return "".join(
        f".laid:has(#pick-{n}:not(:checked)) .run-{n} {{ display: none; }}\n"
        for n in range(0 if over is None else len(over.runs))
    )


def _row(number: int, run: OverlaidRun) -> LaidRow:
    cells = tuple(amount(mean(run, panel)) for panel in PANELS)
    return LaidRow(number, plain(run.run_id, 80), run.block, run.shown, cells, mark_lines(run.marks))


def colours(runs: Sequence[OverlaidRun]) -> Mapping[str, str]:
    """Arm → name of its colour in the page's style."""
    arms = list(dict.fromkeys(run.arm for run in runs))
    first, *others = COLOURS
    return {arm: first if n == 0 else others[(n - 1) % len(others)] for n, arm in enumerate(arms)}


def means(run: OverlaidRun) -> str:
    """List the means over the measure phase: `throughput, /s 1,905; CPU, cores 0.98`."""
    by_panel = ((panel, mean(run, panel)) for panel in PANELS)
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
