"""One run over time in the views of several monitors, beside the counters and the real tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from tare.analyze.views.model import Measure
from tare.analyze.views.summary import Line, RunViews
from tare.report.charts.theme import (
    ACCENT,
    INK,
    MUTED,
    PUBLISHED,
    Axis,
    Frame,
    of_rows,
    seconds_axis,
    themed,
    x_at,
    y_at,
)
from tare.report.figures import amount

_PANEL_PX = 92
_LABELS_PX = 62
_GAPS = alt.RowColnumber(row=62, column=76)
_COUNTERS = "tare-probe"


def drawable(run: RunViews) -> list[Line]:
    """Return the tools that show CPU of the SUT's control group, without the counters; by tool, each node."""
    shown = [line for line in _cpu(run) if line.view.tool != _COUNTERS and line.figures.value is not None]
    tools = list(dict.fromkeys(line.view.tool for line in shown))
    return sorted(shown, key=lambda line: tools.index(line.view.tool))


def has_real(run: RunViews) -> bool:
    """Whether the chart shows a real tool."""
    return any(line.real is not None for line in drawable(run))


def views(run: RunViews, frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification: a panel for each tool and node, percent of a CPU over seconds."""
    counters = {line.subject: line for line in _cpu(run) if line.view.tool == _COUNTERS}
    # A rate over a range starts before the first sample, and a tool may have been running before.
    seen = [_of_line(run.views.samples, line) for line in counters.values()] or [run.views.samples]
    begin = int(pl.concat(seen)["from_ns"].min() or 0)  # type: ignore[arg-type] # a whole number, or none
    true = {subject: _points(run.views.samples, line, begin) for subject, line in counters.items()}
    panels = [_panel(run, line, true.get(line.subject, []), begin, frame) for line in drawable(run)]
    # One row for each tool, if its nodes fit into it.
    columns = min(frame.columns, len(run.of_sut)) if len(run.of_sut) > 1 else frame.columns
    return themed(alt.concat(*panels, columns=columns, bounds="flush", spacing=_GAPS), frame)


def in_words(run: RunViews) -> str:
    """Describe the chart in words."""
    sentences = [
        f"{_named(run, line, line.view.title)} {amount(line.core_percent)} %{_real_in_words(line)}"
        for line in _cpu(run)
    ]
    return (
        f"Chart: CPU of the SUT in percent of one CPU over the measure phase. On average: {'; '.join(sentences)}."
    )


def _real_in_words(line: Line) -> str:
    if line.real is None or line.cores is None:
        return ""
    return f", the real tool {amount(line.real.real * line.cores)} %"


def _cpu(run: RunViews) -> list[Line]:
    """Return each tool's first CPU figure by node; a second one (irate() beside rate()) is only in the table."""
    cpu_lines = [
        line for line in run.views.lines if line.measure is Measure.CONTAINER_CPU and line.cores is not None
    ]
    firsts: dict[tuple[str, str], Line] = {}
    for subject in run.of_sut:
        for line in cpu_lines:
            if line.subject == subject:
                firsts.setdefault((subject, line.view.tool), line)
    return list(firsts.values())


def _named(run: RunViews, line: Line, tool: str) -> str:
    """Name a tool, with the node if there are several."""
    return f"{tool}, {line.subject}" if len(run.of_sut) > 1 else tool


def _panel(run: RunViews, line: Line, true: Sequence[dict[str, float]], begin: int, frame: Frame) -> Any:
    shown = _points(run.views.samples, line, begin)
    real = _points(run.views.observed, line, begin)
    x = alt.X("second:Q", axis=seconds_axis(tickCount=4))
    y = alt.Y("cpu:Q", axis=Axis(title=None, tickCount=3, minExtent=_LABELS_PX, labelExpr="datum.value + ' %'"))
    place = {"x": x.scale(nice=False), "y": y.scale(zero=True)}
    layers: list[Any] = [
        _curve(true).mark_line(color=MUTED, strokeWidth=4, opacity=0.4).encode(**place),
        _curve(shown).mark_line(color=ACCENT, strokeWidth=1.5).encode(**place),
    ]
    if real:
        marks = _curve(real).mark_point(
            shape="diamond", size=40, filled=False, strokeWidth=1.5, opacity=1, color=PUBLISHED
        )
        layers.append(marks.encode(**place))
    title = of_rows([{}]).mark_text(
        align="left",
        baseline="bottom",
        fontWeight="bold",
        fontSize=frame.text_px,
        color=INK,
        text=_named(run, line, line.view.tool),
    )
    layers.append(title.encode(x=x_at(0), y=y_at(-10)))
    return alt.layer(*layers).properties(width=frame.panel_px, height=_PANEL_PX)


def _curve(points: Sequence[dict[str, float]]) -> alt.Chart:
    return of_rows(list(points))


def _points(samples: pl.DataFrame, line: Line, begin: int) -> list[dict[str, float]]:
    rows = _of_line(samples, line)
    cores = line.cores or 0.0
    return [
        {"second": round((to_ns - begin) / 1e9, 2), "cpu": round(value * cores, 2)}
        for to_ns, value in rows.sort("to_ns").select("to_ns", "value").iter_rows()
        if to_ns > begin
    ]


def _of_line(samples: pl.DataFrame, line: Line) -> pl.DataFrame:
    of_line = (pl.col("tool") == line.view.tool) & (pl.col("quantity") == line.quantity.name)
    return samples.filter(of_line & (pl.col("subject") == line.subject) & pl.col("value").is_not_null())
