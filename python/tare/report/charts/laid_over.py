"""Overlaid runs: a panel for each quantity, a line for each run, which a page shows or hides by its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from tare.analyze.timelines.runs import OverlaidRun, RunOverlay
from tare.analyze.timelines.series import READ, WRITTEN
from tare.report.charts.theme import INK, MUTED, Frame, Scale, of_rows, seconds_axis, themed, value_axis, x_at, y_at
from tare.report.charts.timelines import bands_of, is_marked_in
from tare.report.plain import plain
from tare.report.sections.runs import colours, means, panels
from tare.report.words.marks import mark_lines

_DASHES: Mapping[str, tuple[int, ...]] = {"whole": (1, 0), "dashes": (5, 3), "dots": (2, 2), "both": (8, 3, 2, 3)}
"""Dashes of an arm's runs, by block."""
_PANEL_PX = 120
_LABELS_PX = 48
_GAPS = alt.RowColnumber(row=58, column=66)


def laid_over(shown: RunOverlay, frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification. Marks of run N (from 0) have the description `run-N`."""
    shown_panels = [panel for panel in panels() if _has_values(panel, shown.runs)]
    width, columns = (320, 2) if frame.values else (220, 1)
    reach = _reach(shown.runs)
    drawn = [
        _panel(shown.runs, panel, reach, frame).properties(width=width, height=_PANEL_PX) for panel in shown_panels
    ]
    return themed(alt.concat(*drawn, columns=columns, bounds="flush", spacing=_GAPS), frame)


def _has_values(panel: str, runs: Sequence[OverlaidRun]) -> bool:
    """Whether a panel has values; a disk's panel only if anything was read or written."""
    values = [point.value for run in runs for point in run.points if point.panel == panel]
    return any(values) if panel in (READ, WRITTEN) else bool(values)


def in_words(shown: RunOverlay) -> str:
    """Describe the runs shown at first in words; the table below has every run."""
    sentences = [
        "; ".join([f"{plain(run.run_id, 60)} of {plain(run.arm, 60)}: {means(run)}", *mark_lines(run.marks)])
        for run in shown.runs
        if run.shown
    ]
    return f"Chart: runs over time, overlaid. Means of the measure phase: {'. '.join(sentences)}."


def _reach(runs: Sequence[OverlaidRun]) -> tuple[float, float]:
    """Return the first and the last second of any run."""
    seconds = [point.second for run in runs for point in run.points]
    return min(seconds, default=0.0), max(seconds, default=1.0)


def _panel(runs: Sequence[OverlaidRun], panel: str, reach: tuple[float, float], frame: Frame) -> Any:
    x = alt.X("second:Q", axis=seconds_axis(tickCount=5), scale=Scale(domain=list(reach), nice=False))
    y = alt.Y("value:Q", axis=value_axis(tickCount=3, minExtent=_LABELS_PX))
    pens = _pens(runs)
    rows = [row for n, run in enumerate(runs) for row in _line(run, panel, {**pens[run.run_id], "run": f"run-{n}"})]
    heads = [
        {**pens[run.run_id], "run": f"run-{n}", "second": mark.second}
        for n, run in enumerate(runs)
        for mark in run.marks
        if reach[0] <= mark.second <= reach[1] and is_marked_in(mark, panel)
    ]
    bands = [
        {**pens[run.run_id], "run": f"run-{n}", "second": band.began, "end": band.ended}
        for n, run in enumerate(runs)
        for band in bands_of(run.marks, panel, reach)
    ]
    each: dict[str, Any] = {"color": alt.Color("colour:N", scale=None, legend=None), "description": "run:N"}
    dashes: list[Any] = [list(dash) for dash in _DASHES.values()]
    dashed = alt.StrokeDash("dash:N", scale=Scale(domain=list(_DASHES), range=dashes), legend=None)
    layers: list[Any] = [
        of_rows([{"second": 0.0}]).mark_rule(color=MUTED, strokeDash=[2, 2]).encode(x=x),
        of_rows(rows)
        .mark_line(strokeWidth=1.5, point=False)
        .encode(x=x, y=y.scale(zero=True), detail=alt.Detail("run:N"), strokeDash=dashed, **each),
        _heading(panel, frame),
    ]
    if bands:
        tinted = (
            of_rows(bands)
            .mark_rect(opacity=0.22, minBandSize=1)
            .encode(x=x, x2=alt.X2("end:Q"), detail=alt.Detail("run:N"), **each)
        )
        layers.insert(0, tinted)
    if heads:
        hanging = of_rows(heads).mark_point(shape="triangle-down", size=70, filled=True, opacity=1)
        layers.append(hanging.encode(x=x, y=y_at(2), **each))
    return alt.layer(*layers)


def _pens(runs: Sequence[OverlaidRun]) -> Mapping[str, Mapping[str, str]]:
    """Run → its pen: the arm's colour, dashed by its place among the arm's runs."""
    hues, names = colours(runs), list(_DASHES)
    counts = dict.fromkeys(hues, 0)
    pens = {}
    for run in runs:
        pens[run.run_id] = {"colour": f"var(--{hues[run.arm]})", "dash": names[counts[run.arm] % len(names)]}
        counts[run.arm] += 1
    return pens


def _line(run: OverlaidRun, panel: str, pen: Mapping[str, str]) -> list[dict[str, Any]]:
    """Points of a run's line, interrupted where there was no process, as between two clients."""
    points = [point for point in run.points if point.panel == panel]
    gaps = sorted(later.second - sooner.second for sooner, later in pairwise(points))
    rows: list[dict[str, Any]] = []
    for point in points:
        if rows and point.second - rows[-1]["second"] > 2.5 * gaps[len(gaps) // 2]:
            rows.append({**pen, "second": point.second, "value": None})
        rows.append({**pen, "second": point.second, "value": point.value})
    return rows


def _heading(words: str, frame: Frame) -> Any:
    mark = of_rows([{}]).mark_text(
        align="left", baseline="bottom", fontWeight="normal", fontSize=frame.text_px, color=INK, text=words
    )
    return mark.encode(x=x_at(0), y=y_at(-10))
