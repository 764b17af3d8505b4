"""Latency over load, all arms in one plot: where a curve crosses the bound is the sustainable rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tare.analyze.climb import Climb
from tare.report.charts.theme import INK, LINE, MUTED, Axis, Frame, Scale, of_rows, themed, y_datum
from tare.report.figures import amount
from tare.report.plain import distinct, plain

MOST_ARMS = 8
"""As many lines can be told apart by their colours."""
_HEIGHT_PX = 300
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Every other line also differs by its dashes."""
_WIDE_LABEL = 32
_FIRST_DIGIT = "indexof('125', slice(format(datum.value, '.0e'), 0, 1)) >= 0"


def climb(curves: Sequence[tuple[str, Climb]], frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification: the quantile over the target rate, both logarithmic, a line per arm."""
    labels = distinct(tuple(arm for arm, _ in curves), _WIDE_LABEL)
    order = [labels[arm] for arm, _ in curves]
    quantile, within_ms = curves[0][1].quantile, curves[0][1].within_ms
    rows = [
        {"arm": labels[arm], "rate": step.rate_per_s, "ms": step.latency_ms}
        for arm, one in curves
        for step in one.steps
        if step.latency_ms is not None
    ]
    marks = [{"arm": labels[arm], "rate": one.rate_per_s, "ms": within_ms} for arm, one in curves]
    x = alt.X(
        "rate:Q",
        scale=Scale(type="log", nice=False),
        axis=Axis(
            title="target rate, arrivals/s",
            labelExpr=f"{_FIRST_DIGIT} ? format(datum.value, ',~f') : ''",
            labelAngle=0,
            grid=False,
        ),
    )
    y = alt.Y(
        "ms:Q",
        scale=Scale(type="log", nice=False),
        axis=Axis(title=f"{quantile}, ms", labelExpr=f"{_FIRST_DIGIT} ? format(datum.value, '~g') : ''"),
    )
    legend = alt.Legend(
        title=None,
        orient="top",
        columns=3 if frame.values else 1,
        columnPadding=32,
        labelFontSize=frame.text_px,
        labelColor=INK,
        labelLimit=240,
        symbolType="stroke",
        symbolSize=300,
    )
    colours = [f"var(--c{n % MOST_ARMS + 1})" for n in range(len(order))]
    dashes = [_DASHES[n % len(_DASHES)] for n in range(len(order))]
    colour = alt.Color("arm:N", sort=order, scale=Scale(domain=order, range=colours), legend=legend)
    dash = alt.StrokeDash("arm:N", sort=order, scale=Scale(domain=order, range=dashes), legend=legend)
    layers = [
        of_rows([{}]).mark_rule(color=MUTED, strokeWidth=1.5).encode(y=y_datum(within_ms)),
        of_rows(rows).mark_line(strokeWidth=2.2).encode(x=x, y=y, color=colour, strokeDash=dash),
        of_rows(marks)
        .mark_point(shape="circle", size=70, filled=True, opacity=1, stroke=LINE)
        .encode(x=x, y=y, color=colour),
    ]
    width = frame.page_px - 120 if frame.values else frame.page_px - 90
    return themed(alt.layer(*layers).properties(width=width, height=_HEIGHT_PX), frame)


def in_words(curves: Sequence[tuple[str, Climb]]) -> str:
    """Describe the chart in words."""
    first = curves[0][1]
    ends = [f"{plain(arm, 60)} up to {amount(one.rate_per_s)}/s" for arm, one in curves]
    bound = f"{first.quantile} within {first.within_ms:g} ms"
    return f"Chart: latency over load, a line per arm. {bound} held up to: {'; '.join(ends)}."
