"""Latency by quantile, a row for each arm: both distributions, and the shift between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tare.analyze.statistics.quantile_shift import Quantile, QuantileShift
from tare.report.charts.theme import (
    ACCENT,
    INK,
    LINE,
    MUTED,
    Axis,
    Frame,
    Scale,
    of_rows,
    themed,
    upright_percent_axis,
    x_at,
    y_at,
    y_datum,
)
from tare.report.plain import plain
from tare.report.sections.latency import label, shifted, title

MOST_ROWS = 16
"""Most rows in one chart; those left out are named beside it."""
_PANEL_PX = 120
_LABELS_PX = 58
_WIDE_RANGE = 4.0
"""Ratio of largest to smallest latency above which only 1, 2 and 5 of each decade get labels, since Vega would drop
labels arbitrarily."""
_FIRST_DIGIT = "indexof('125', slice(format(datum.value, '.0e'), 0, 1)) >= 0"
_SHORT = 18
_GAPS = alt.RowColnumber(row=72, column=72)


def shift(shifts: Sequence[QuantileShift], frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification: latency in ms (left) and shift in percent (right) by quantile."""
    percents = list(dict.fromkeys(each.percent for one in shifts for each in one.quantiles))
    order = [label(each) for each in sorted(percents)]
    panels = [panel for one in shifts for panel in _row(one, order, frame)]
    return themed(alt.concat(*panels, columns=2, bounds="flush", spacing=_GAPS), frame)


def in_words(shifts: Sequence[QuantileShift]) -> str:
    """Describe the chart in words."""
    sentences = [
        f"{title(one, 60)} against {plain(one.baseline, 60)}: "
        + ", ".join(f"{label(each.percent)} {shifted(each)}" for each in one.quantiles)
        for one in shifts
    ]
    return f"Chart: latency over quantiles, and its shift with 95 % intervals. {'; '.join(sentences)}."


def _row(one: QuantileShift, order: Sequence[str], frame: Frame) -> tuple[Any, Any]:
    width = 270 if frame.values else frame.panel_px
    ticks = list(order)[:: 1 if frame.values else 3]
    x = alt.X(
        "quantile:N",
        sort=list(order),
        scale=Scale(domain=list(order)),
        axis=Axis(title=None, grid=False, labelAngle=0, values=ticks, labelFontSize=frame.text_px - 2),
    )
    words = title(one, 40)
    left = alt.layer(*_distributions(one, x), _heading(words, frame))
    # On a phone, there is no space beside a long name; the text below the chart also says which panel is right.
    right = alt.layer(*_shifts(one, x), _heading("shift" if frame.values or len(words) <= _SHORT else "", frame))
    return tuple(panel.properties(width=width, height=_PANEL_PX) for panel in (left, right))  # type: ignore[return-value]  # of two, as it was given


def _distributions(one: QuantileShift, x: alt.X) -> list[Any]:
    figures = [ms for each in one.quantiles for ms in (each.baseline_ms, each.arm_ms)]
    words = "format(datum.value, '~g') + ' ms'"
    if figures and max(figures) > _WIDE_RANGE * min(figures):
        words = f"{_FIRST_DIGIT} ? {words} : ''"
    axis = Axis(title=None, tickCount=4, minExtent=_LABELS_PX, labelExpr=words)
    y = alt.Y("ms:Q", scale=Scale(type="log", nice=False), axis=axis)
    sides = ((MUTED, "baseline_ms", 4.0, 0.55), (ACCENT, "arm_ms", 1.5, 1.0))
    return [
        of_rows([{"quantile": label(each.percent), "ms": getattr(each, key)} for each in one.quantiles])
        .mark_line(color=colour, strokeWidth=width, opacity=opacity)
        .encode(x=x, y=y)
        for colour, key, width, opacity in sides
    ]


def _shifts(one: QuantileShift, x: alt.X) -> list[Any]:
    y = alt.Y("point:Q", axis=upright_percent_axis(tickCount=4, minExtent=_LABELS_PX))
    rows = [_shift(each) for each in one.quantiles]
    bounded = [row for row in rows if row["low"] is not None]
    layers: list[Any] = [
        of_rows(rows).mark_area(color=LINE, opacity=0.6).encode(x=x, y=alt.Y("under:Q"), y2=alt.Y2("over:Q"))
    ]
    layers.append(of_rows([{}]).mark_rule(color=MUTED, strokeWidth=1.5).encode(y=y_datum(0)))
    if bounded:
        layers.append(
            of_rows(bounded)
            .mark_rule(color=ACCENT, strokeWidth=4)
            .encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
        )
    layers.append(
        of_rows(rows).mark_point(shape="circle", size=34, filled=True, opacity=1, color=INK).encode(x=x, y=y)
    )
    return layers


def _shift(each: Quantile) -> dict[str, Any]:
    width = each.resolution or 0.0
    return {
        "quantile": label(each.percent),
        "point": each.estimate.point,
        "low": each.estimate.low,
        "high": each.estimate.high,
        "under": -width,
        "over": width,
    }


def _heading(words: str, frame: Frame) -> Any:
    mark = of_rows([{}]).mark_text(
        align="left", baseline="bottom", fontWeight="bold", fontSize=frame.text_px, color=INK, text=words
    )
    return mark.encode(x=x_at(0), y=y_at(-10))
