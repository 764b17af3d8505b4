"""CPU time per operation by cause: a bar for each arm, a colour for each cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tare.analyze.explain.explanation import ArmExplanation
from tare.analyze.explain.parts import Part
from tare.report.charts.theme import INK, MUTED, Axis, Frame, Scale, of_rows, themed
from tare.report.explain.words import sentence
from tare.report.plain import distinct

_ROW_PX = 30
_LONGEST_LABEL = 30
_COLOURS = tuple(f"var(--c{n})" for n in range(1, 9))
OTHER = "other"


def drawable(arms: Sequence[ArmExplanation]) -> list[ArmExplanation]:
    """Return the arms whose causes are known."""
    return [arm for arm in arms if arm.causes and arm.total is not None]


def components(arms: Sequence[ArmExplanation], frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification; baselines are above the arms that are compared with them."""
    bars = list(dict.fromkeys([*(arm.baseline for arm in arms), *(arm.arm for arm in arms)]))
    labels = distinct(tuple(bars), _LONGEST_LABEL)
    titles = largest(arms)
    order = [*titles, OTHER]
    rows = [row for arm in arms for row in _rows(arm, titles, labels, order)]
    known = {(row["arm"], row["cause"]): row for row in rows}  # a baseline of several arms is drawn once
    axis = Axis(
        title=None, labelColor=INK, labelFontSize=frame.text_px, labelLimit=frame.label_px - 10,
        minExtent=frame.label_px, grid=False,
    )  # fmt: skip
    legend = alt.Legend(
        title=None, orient="bottom", columns=2 if frame.values else 1, columnPadding=40, labelColor=INK,
        labelLimit=260, labelFontSize=frame.text_px, symbolType="square",
    )  # fmt: skip
    scale = Scale(domain=order, range=[*_COLOURS[: len(titles)], MUTED])
    chart = (
        of_rows(list(known.values()))
        .mark_bar(height=16)
        .encode(
            x=alt.X("us:Q", stack="zero").axis(Axis(title="CPU time per operation, µs", tickCount=frame.ticks)),
            y=alt.Y("arm:N", sort=[labels[bar] for bar in bars], axis=axis),
            color=alt.Color("cause:N", sort=order, scale=scale, legend=legend),
            order=alt.Order("rank:Q"),
        )
        .properties(width=frame.plot_px, height=alt.Step(_ROW_PX))
    )
    return themed(chart, frame)


def largest(arms: Sequence[ArmExplanation]) -> list[str]:
    """Return the titles of the largest causes of any arm; as many as there are colours."""
    size: dict[str, float] = {}
    for part in (part for arm in arms for part in arm.causes):
        size[part.title] = max(size.get(part.title, 0.0), part.us, part.baseline_us)
    return sorted(size, key=lambda title: -size[title])[: len(_COLOURS)]


def _rows(
    arm: ArmExplanation, titles: Sequence[str], labels: dict[str, str], order: Sequence[str]
) -> list[dict[str, Any]]:
    rows = []
    for bar, of in ((arm.baseline, _baseline), (arm.arm, _own)):
        us = dict.fromkeys(order, 0.0)
        for part in arm.causes:
            us[part.title if part.title in titles else OTHER] += of(part)
        rows += [
            {"arm": labels[bar], "cause": title, "us": value, "rank": order.index(title)}
            for title, value in us.items()
        ]
    return rows


def _own(part: Part) -> float:
    return part.us


def _baseline(part: Part) -> float:
    return part.baseline_us


def in_words(arms: Sequence[ArmExplanation]) -> str:
    """Describe the chart in words."""
    return f"Chart: CPU time per operation by cause. {'; '.join(sentence(arm) for arm in arms)}."
