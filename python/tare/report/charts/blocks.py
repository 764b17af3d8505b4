"""The effect by block, a panel for each arm: shows drift, outliers and the data behind the interval."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, quantiles
from typing import Any

import altair as alt

from tare.analyze import Finding
from tare.report.charts.theme import (
    ACCENT,
    INK,
    MUTED,
    Axis,
    Frame,
    of_rows,
    themed,
    upright_percent_axis,
    x_at,
    y_at,
)
from tare.report.figures import percent
from tare.report.plain import distinct, plain

_PANEL_PX = 92
_LABELS_PX = 62
_GAPS = alt.RowColnumber(row=62, column=76)
"""Gaps between the plots, so that panels align however long their labels are."""
_MOST_POINTS, _FEWEST_A_PANEL = 2500, 20
"""Most points in one chart, which bounds the page's size: above it, a point stands for neighbouring blocks."""
_MOST_LISTED = 30
"""Most effects in an arm's text."""


def blocks(findings: Sequence[Finding], frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification; each panel has its own scale, so that small effects are visible."""
    arms = tuple(finding.arm for finding in findings)
    wide_enough = frame if max(map(len, arms), default=0) <= frame.panel_label else frame.in_one_column
    labels = distinct(arms, wide_enough.panel_label)
    each = blocks_a_point(findings)
    panels = [_panel(finding, labels[finding.arm], wide_enough, each) for finding in findings]
    return themed(alt.concat(*panels, columns=wide_enough.columns, bounds="flush", spacing=_GAPS), wide_enough)


def blocks_a_point(findings: Sequence[Finding]) -> int:
    """Return how many neighbouring blocks form one point; 1 if each has its own."""
    most = max(_FEWEST_A_PANEL, _MOST_POINTS // max(1, len(findings)))
    return -(-max((len(finding.blocks) for finding in findings), default=1) // most) or 1


def _panel(finding: Finding, label: str, frame: Frame, each: int) -> Any:
    whole = of_rows(_rows(finding, each))
    dots = whole.transform_filter("datum.kind == 'block'")
    x = alt.X("block:Q", axis=Axis(title=None, format="d", tickMinStep=1, grid=False, tickCount=5))
    y = alt.Y("effect:Q", axis=upright_percent_axis(tickCount=3, minExtent=_LABELS_PX)).scale(zero=False)
    place = {"x": x.scale(zero=False, nice=False, padding=8), "y": y}
    return alt.layer(
        whole.transform_filter("datum.kind == 'interval'")
        .mark_rect(color=ACCENT, opacity=0.16)
        .encode(y=alt.Y("low:Q").scale(zero=False), y2=alt.Y2("high:Q")),
        whole.transform_filter("datum.kind == 'zero'")
        .mark_rule(color=MUTED, strokeWidth=1.5)
        .encode(y=alt.Y("effect:Q")),
        dots.mark_line(color=INK, strokeWidth=1, opacity=0.5).encode(**place),
        dots.mark_point(shape="circle", size=36, filled=True, opacity=1, color=INK).encode(**place),
        # Not a title: Vega positions titles by the reach of the axis labels, which would misalign them.
        of_rows([{}])
        .mark_text(
            align="left", baseline="bottom", fontWeight="bold", fontSize=frame.text_px, color=INK, text=label
        )
        .encode(x=x_at(0), y=y_at(-10)),
    ).properties(width=frame.panel_px, height=_PANEL_PX)


def in_words(findings: Sequence[Finding]) -> str:
    """Describe the chart in words."""
    sentences = [f"{plain(finding.arm, 60)}: {_effects(finding.blocks)}" for finding in findings]
    return f"Chart: the effect on throughput in each block. {'; '.join(sentences)}."


def _effects(by_block: Sequence[tuple[int, float]]) -> str:
    """List each effect if there are few; else their range and the middle half."""
    if len(by_block) <= _MOST_LISTED:
        return ", ".join(f"block {block} {percent(effect)}" for block, effect in by_block) or "no block"
    effects = [effect for _, effect in by_block]
    first, _, third = quantiles(effects, method="inclusive")
    ends = f"{percent(min(effects))} to {percent(max(effects))}"
    return f"{len(effects)} blocks, {ends}, half of them {percent(first)} to {percent(third)}"


def _rows(finding: Finding, each: int) -> list[dict[str, Any]]:
    points = _points(finding.blocks, each)
    rows: list[dict[str, Any]] = [{"kind": "block", "block": block, "effect": effect} for block, effect in points]
    low, high = finding.estimate.low, finding.estimate.high
    if low is not None and high is not None:
        rows.append({"kind": "interval", "low": low, "high": high})
    reach = [effect for _, effect in points] + [bound for bound in (low, high) if bound is not None]
    if reach and min(reach) <= 0 <= max(reach):
        rows.append({"kind": "zero", "effect": 0.0})
    return rows


def _points(blocks: Sequence[tuple[int, float]], each: int) -> Sequence[tuple[float, float]]:
    if each == 1:
        return blocks
    groups = (blocks[begin : begin + each] for begin in range(0, len(blocks), each))
    return [(fmean(block for block, _ in group), fmean(effect for _, effect in group)) for group in groups]
