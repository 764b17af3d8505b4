"""Which factor changes throughput: main effects first, then interactions, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tare.analyze.factorial import Effect
from tare.report.charts.theme import ACCENT, INK, MUTED, Axis, Frame, of_rows, percent_axis, themed, x_at, x_datum
from tare.report.figures import decimals_of, interval, percent, signed
from tare.report.plain import distinct
from tare.report.sections.effects import name

MOST_ROWS = 40
_ROW_PX = 26
_TWO_LINES_PX = 36
_LONGEST_LABEL = 46
_TWO_LINES = "split(replace(datum.label, ' \N{MULTIPLICATION SIGN} ', '\\n\N{MULTIPLICATION SIGN} '), '\\n')"
"""Label of an interaction on a phone: the second factor below the first."""


def effects(estimates: Sequence[Effect], frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification; all effects are of one metric."""
    names = [name(each) for each in estimates]
    labels = distinct(tuple(names), _LONGEST_LABEL)
    rows = [_row(each, labels[called]) for each, called in zip(estimates, names, strict=True)]
    label_px = frame.label_px + (120 if frame.values else 30)
    plot_px = frame.plot_px - (120 if frame.values else 30)
    row_px = _ROW_PX if frame.values or not any(each.interaction for each in estimates) else _TWO_LINES_PX
    axis = Axis(
        title=None, labelColor=INK, labelFontSize=frame.text_px - 1, labelLimit=label_px - 10, minExtent=label_px,
        grid=False, labelExpr=alt.Undefined if frame.values else _TWO_LINES,
    )  # fmt: skip
    y = alt.Y("effect:N", sort=None, axis=axis)
    whole = of_rows(rows)
    fitting = (
        alt.X("low:Q")
        .scale(nice=False, padding=14)
        .axis(percent_axis("effect on throughput", tickCount=frame.ticks))
    )
    colour = alt.condition("datum.two", alt.value(INK), alt.value(ACCENT))
    layers = [
        alt.Chart().mark_rule(color=MUTED, strokeWidth=1.5).encode(x=x_datum(0)),
        whole.transform_filter("isValid(datum.low)")
        .mark_bar(height=4, cornerRadius=2, minBandSize=2)
        .encode(x=fitting, x2=alt.X2("high:Q"), y=y, color=colour),
        whole.mark_point(shape="circle", size=60, filled=True, opacity=1).encode(
            x=alt.X("point:Q"), y=y, color=colour
        ),
    ]
    if frame.values:
        layers.append(
            whole.mark_text(align="left", color=INK, fontSize=frame.text_px - 1).encode(
                x=x_at(plot_px + 16), y=y, text=alt.Text("words:N")
            )
        )
    return themed(alt.layer(*layers).properties(width=plot_px, height=alt.Step(row_px)), frame)


def drawable(estimates: Sequence[Effect]) -> list[Effect]:
    """Return the main effects, then the strongest interactions that fit."""
    main = [each for each in estimates if not each.interaction][:MOST_ROWS]
    two = sorted((each for each in estimates if each.interaction), key=lambda one: -abs(one.estimate.point or 0.0))
    return [*main, *two[: MOST_ROWS - len(main)]]


def in_words(estimates: Sequence[Effect]) -> str:
    """Describe the chart in words."""
    sentences = [f"{name(each)} {_point(each)}, 95 % interval {interval(each.estimate)}" for each in estimates]
    return f"Chart: what each factor does to throughput. {'; '.join(sentences)}."


def _point(effect: Effect) -> str:
    return percent(effect.estimate.point, decimals_of(effect.estimate))


def _row(effect: Effect, label: str) -> dict[str, Any]:
    estimate = effect.estimate
    return {
        "effect": label,
        "two": effect.interaction,
        "point": estimate.point,
        "low": estimate.low,
        "high": estimate.high,
        "words": signed(f"{_point(effect)}  {interval(estimate)}"),
    }
