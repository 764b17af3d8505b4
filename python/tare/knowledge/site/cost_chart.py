"""Unit costs as a chart: a row for each path or event, a colour for each machine, point and 95 % interval."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import altair as alt

from tare.report.charts.theme import INK, MUTED, PLAIN, Axis, Frame, Scale, of_rows, themed, x_at, x_datum
from tare.report.drawings import Figure, figure
from tare.report.figures import amount, signed
from tare.report.plain import distinct

MOST_MACHINES = 8
"""Machines in a chart: as many as there are colours. The table below it has all."""
_ROW_PX, _MACHINE_PX = 26, 14
_LONGEST_LABEL = 64
_MORE_LABEL_PX, _LESS_PLOT_PX = 115, 60
"""Widths of a wide chart's labels, so that the longest path stands on one line."""
_LETTER = 0.55
"""Width of a letter relative to its height."""
_LOG_STEPS = (0.001, 0.01, 0.1, 1, 10, 100, 1000, 10_000, 100_000)
_LEAST_US = 0.001
"""Where a logarithmic axis ends: a cost below a nanosecond is no different from none."""


@dataclass(frozen=True)
class Drawn:
    """One cost in a chart, in microseconds. `row`: path or event; `machine`: its number in the page's list."""

    row: str
    machine: int
    us: float
    low: float | None
    high: float | None


def drawn_costs(name: str, title: str, costs: Sequence[Drawn], *, log: bool = False) -> Figure | None:
    """Draw the costs of one quantity; `None` if there are none. `log`: they differ by orders of magnitude."""
    shown = [each for each in costs if each.machine <= MOST_MACHINES and (each.us > _LEAST_US or not log)]
    return figure(name, partial(_costs, shown, log=log), in_words(title, shown)) if shown else None


def in_words(title: str, costs: Sequence[Drawn]) -> str:
    """Describe the chart in words."""
    several = len({each.machine for each in costs}) > 1
    said = (
        f"{each.row}{f', machine {each.machine}' if several else ''} {signed(amount(each.us))}{_interval(each)}"
        for each in costs
    )
    return f"Chart: {title}, in microseconds with 95 % intervals. {'; '.join(said)}."


def _interval(cost: Drawn) -> str:
    if cost.low is None or cost.high is None:
        return ""
    return f" [{signed(amount(cost.low))}, {signed(amount(cost.high))}]"


def _costs(costs: Sequence[Drawn], frame: Frame, *, log: bool) -> dict[str, Any]:
    names = list(dict.fromkeys(each.row for each in costs))
    wide = int(frame.values)
    label_px, plot_px = frame.label_px + wide * _MORE_LABEL_PX, frame.plot_px - wide * _LESS_PLOT_PX
    letters = int((label_px - 18) / (frame.text_px * _LETTER))
    short = distinct(tuple(names), _LONGEST_LABEL)
    labels = {name: "\n".join(textwrap.wrap(label, letters)) for name, label in short.items()}
    numbers = sorted({each.machine for each in costs})
    machines = [f"machine {number}" for number in numbers]
    several = len(machines) > 1
    rows = [_row(each, labels[each.row], log=log) for each in costs]
    y: dict[str, Any] = {
        "y": alt.Y(
            "row:N",
            sort=[labels[name] for name in names],
            axis=Axis(
                title=None, labelColor=INK, labelFontSize=frame.text_px, labelExpr="split(datum.label, '\\n')",
                labelLimit=label_px - 18, minExtent=label_px, grid=False,
            ),
        )
    }  # fmt: skip
    colours = Scale(domain=machines, range=[f"var(--c{number})" for number in numbers])
    legend = None
    if several:
        y["yOffset"] = alt.YOffset("machine:N", sort=machines)
        legend = alt.Legend(
            title=None, orient="bottom", columns=4 if frame.values else 2, labelColor=INK,
            labelFontSize=frame.text_px, symbolType="circle", symbolOpacity=1, columnPadding=18,
        )  # fmt: skip
    colour = alt.Color("machine:N", sort=machines, scale=colours, legend=legend)
    whole = of_rows(rows)
    layers: list[Any] = [] if log else [alt.Chart().mark_rule(color=MUTED, strokeWidth=1.5).encode(x=x_datum(0))]
    layers += [
        whole.transform_filter("isValid(datum.low)")
        .mark_bar(height=4, cornerRadius=2, minBandSize=2, opacity=0.55)
        .encode(x=_x("low:Q", frame, log=log), x2=alt.X2("high:Q"), color=colour, **y),
        whole.mark_point(shape="circle", size=64, filled=True, opacity=1).encode(
            x=_x("us:Q", frame, log=log), color=colour, **y
        ),
    ]
    if frame.values and not several:
        words = whole.mark_text(align="left", color=INK, fontSize=frame.text_px)
        layers.append(words.encode(x=x_at(plot_px + 18), text=alt.Text("words:N"), y=y["y"]))
    lines = 1 + max(label.count("\n") for label in labels.values())
    step = max(_ROW_PX, _MACHINE_PX * len(machines) + 8, lines * (frame.text_px + 3) + 6)
    height = {"step": step, "for": "position"} if several else alt.Step(step)
    chart = alt.layer(*layers).properties(width=plot_px, height=height)
    return themed(chart, frame)


def _x(field: str, frame: Frame, *, log: bool) -> alt.X:
    if log:
        axis = Axis(title="µs, logarithmic", values=list(_LOG_STEPS), labelExpr="format(datum.value, ',~g')")
        return alt.X(field).scale(type="log", nice=False, padding=14).axis(axis)
    return alt.X(field).scale(nice=False, padding=14).axis(Axis(title="µs", labelExpr=PLAIN, tickCount=frame.ticks))


def _row(cost: Drawn, label: str, *, log: bool) -> dict[str, Any]:
    low = max(cost.low, _LEAST_US) if log and cost.low is not None else cost.low
    return {
        "row": label,
        "machine": f"machine {cost.machine}",
        "us": cost.us,
        "low": None if cost.high is None else low,
        "high": None if cost.low is None else cost.high,
        "words": signed(f"{amount(cost.us)}{_interval(cost)}"),
    }
