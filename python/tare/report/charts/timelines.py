"""Resource use of SUT, client, engine and host over one run of each arm: a panel for each resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import altair as alt

from tare.analyze.timelines import Point, Timeline, Timelines
from tare.analyze.timelines.marks import Mark
from tare.analyze.timelines.series import CLIENT, CPU, ENGINE, HOST, MEMORY, NETWORK, READ, SUT, WRITTEN
from tare.report.charts.theme import (
    ACCENT,
    INK,
    LINE,
    MUTED,
    PUBLISHED,
    WORK,
    Frame,
    of_rows,
    seconds_axis,
    themed,
    value_axis,
    x_at,
    y_at,
)
from tare.report.figures import amount
from tare.report.plain import distinct, plain
from tare.report.words.marks import mark_lines

PANELS = (CPU, MEMORY, WRITTEN, NETWORK)
_COLOURS = {HOST: MUTED, ENGINE: INK, CLIENT: PUBLISHED, SUT: ACCENT}
"""In drawing order: the server's line comes last and so is on top."""
_HEADINGS = {WRITTEN: "disk, MiB/s"}
_LINES: Mapping[str, Mapping[str, list[int]]] = {WRITTEN: {READ: [3, 2], WRITTEN: [1, 0]}}
"""Panel → its lines with their dashes."""
_PANEL_PX = 70
_LABELS_PX = 44
_LONGEST_LABEL = 44
"""There is space above all of a run's panels."""
_GAPS_PX = 58
_GAPS = alt.RowColnumber(row=78, column=_GAPS_PX)


@dataclass(frozen=True)
class Band:
    """A period, in seconds since the measure phase began."""

    began: float
    ended: float


def bands_of(marks: Sequence[Mark], panel: str, reach: tuple[float, float]) -> tuple[Band, ...]:
    """Return a panel's periods of work, cut to what the panel shows."""
    if panel != WRITTEN:
        return ()
    return tuple(
        Band(max(mark.second, reach[0]), min(mark.until, reach[1]))
        for mark in marks
        if mark.work and mark.until is not None and mark.until >= reach[0] and mark.second <= reach[1]
    )


def is_marked_in(mark: Mark, panel: str) -> bool:
    """Whether a mark belongs to a panel; work with a known end only belongs to the disk's panel."""
    return not mark.work or (mark.until is None and panel == WRITTEN)


def timelines(shown: Timelines, frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification; panels of one resource share a scale, from zero."""
    columns = len(PANELS) if frame.columns > 2 else 2
    width = (frame.page_px - columns * _GAPS_PX) // columns if frame.columns > 2 else frame.panel_px
    labels = distinct(tuple(run.arm for run in shown.runs), _LONGEST_LABEL)
    tops = {panel: _top(shown, panel) for panel in PANELS}
    panels = [
        _panel(run, panel, labels[run.arm] if panel == CPU else None, frame, tops[panel]).properties(
            width=width, height=_PANEL_PX
        )
        for run in shown.runs
        for panel in PANELS
    ]
    return themed(alt.concat(*panels, columns=columns, bounds="flush", spacing=_GAPS), frame)


def _top(shown: Timelines, panel: str) -> float:
    """Return where the scale of a resource ends, so that arms can be compared by eye."""
    lines = _LINES.get(panel, {panel: [1, 0]})
    return max((point.value for run in shown.runs for point in run.points if point.panel in lines), default=0.0)


def in_words(shown: Timelines) -> str:
    """Describe the means of the measure phase in words."""
    sentences = [f"{plain(run.arm, 60)}: {'; '.join([_means(run), *mark_lines(run.marks)])}" for run in shown.runs]
    title = "Chart: resources used over the phases of one run of each arm, means of the measure phase"
    return f"{title}. {'. '.join(sentences)}."


def _means(run: Timeline) -> str:
    measure = next((span for span in run.phases if span.phase == "measure"), None)
    parts = []
    for panel in (*PANELS, READ):
        for who in (SUT, CLIENT, ENGINE, HOST):
            values = [
                point.value
                for point in run.points
                if (point.panel, point.who) == (panel, who)
                and (measure is None or measure.began <= point.second <= measure.ended)
            ]
            if values:
                parts.append(f"{who} {amount(sum(values) / len(values))} ({panel})")
    return ", ".join(parts)


def _panel(run: Timeline, panel: str, arm: str | None, frame: Frame, top: float) -> Any:
    """Draw one panel. `arm`: its name, above the first panel of a run; `top`: where the scale ends."""
    x = alt.X("second:Q", axis=seconds_axis(tickCount=3))
    y = alt.Y("value:Q", axis=value_axis(tickCount=2, minExtent=_LABELS_PX))
    place = {"x": x.scale(nice=False), "y": y.scale(zero=True, domainMax=top) if top else y.scale(zero=True)}
    layers: list[Any] = [
        of_rows([{"second": span.began, "end": span.ended}])
        .mark_rect(color=LINE, opacity=0.5)
        .encode(x=place["x"], x2=alt.X2("end:Q"))
        for span in run.phases
        if span.phase == "measure"
    ]
    layers += [
        of_rows([{"second": span.began}])
        .mark_rule(color=MUTED, strokeWidth=1, strokeDash=[2, 2])
        .encode(x=place["x"])
        for span in run.phases
        if span.phase != "measure"
    ]
    layers += _events(run, panel, place["x"])
    for quantity, dash in _LINES.get(panel, {panel: [1, 0]}).items():
        for who, colour in _COLOURS.items():
            points = [point for point in run.points if (point.panel, point.who) == (quantity, who)]
            layers += [
                of_rows([{"second": point.second, "value": point.value} for point in stretch])
                .mark_line(color=colour, strokeWidth=1.5 if who == SUT else 1, strokeDash=dash)
                .encode(**place)
                for stretch in _stretches(points)
            ]
    layers.append(_text(_HEADINGS.get(panel, panel), -8, frame, weight="normal"))
    if arm is not None:
        layers.append(_text(arm, -26, frame, weight="bold"))
    return alt.layer(*layers)


def _events(run: Timeline, panel: str, x: Any) -> list[Any]:
    """Draw the server's own work as tinted bands behind the disk's lines, and other events as marks."""
    seconds = [point.second for point in run.points]
    reach = (min(seconds, default=0.0), max(seconds, default=0.0))
    bands = bands_of(run.marks, panel, reach)
    heads = [mark for mark in run.marks if is_marked_in(mark, panel) and reach[0] <= mark.second <= reach[1]]
    layers = []
    if bands:
        tinted = of_rows([{"second": band.began, "end": band.ended} for band in bands])
        layers.append(tinted.mark_rect(color=WORK, opacity=0.3, minBandSize=1).encode(x=x, x2=alt.X2("end:Q")))
    if heads:
        hanging = of_rows([{"second": mark.second} for mark in heads])
        shape = hanging.mark_point(shape="triangle-down", size=50, filled=True, opacity=1, color=INK)
        layers.append(shape.encode(x=x, y=y_at(2)))
    return layers


def _text(words: str, y_px: int, frame: Frame, *, weight: Literal["normal", "bold"]) -> Any:
    mark = of_rows([{}]).mark_text(
        align="left", baseline="bottom", fontWeight=weight, fontSize=frame.text_px - 1, color=INK, text=words
    )
    return mark.encode(x=x_at(0), y=y_at(y_px))


def _stretches(points: Sequence[Point]) -> list[list[Point]]:
    """Split a line where there was no process, as between two clients."""
    gaps = [later.second - sooner.second for sooner, later in pairwise(points)]
    usual = sorted(gaps)[len(gaps) // 2] if gaps else 0.0
    stretches: list[list[Point]] = []
    for point in points:
        if not stretches or point.second - stretches[-1][-1].second > 2.5 * usual:
            stretches.append([])
        stretches[-1].append(point)
    return stretches
