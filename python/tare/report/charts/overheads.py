"""Arms against the baseline in one metric: interval, point, each block, and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import Any

import altair as alt

from tare.analyze import Finding
from tare.analyze.metrics import metric_named
from tare.report.charts.theme import (
    ACCENT,
    INK,
    MUTED,
    PUBLISHED,
    Axis,
    Frame,
    of_rows,
    percent_axis,
    themed,
    x_at,
    x_datum,
)
from tare.report.figures import interval, percent, point, signed
from tare.report.plain import distinct, lines_of, plain

_ROW_PX = 48
_MARGIN_PX = 18
_ABOVE_PX = 13
"""Distance of published figures above the interval, and of blocks below it, so that none hides another."""
_LONGEST_LABEL = 42
_LINES = "split(datum.label, '\\n')"
_LETTER = 0.55
"""Width of a letter relative to its height."""
_MOST_DOTS = 2500
"""Most dots in one chart, which bounds the page's size; above it, a line shows the range of most blocks of an
arm."""
_OF_TWENTY = 20


def overheads(findings: Sequence[Finding], frame: Frame, *, blocks: bool = True) -> dict[str, Any]:
    """Return the Vega-Lite specification for findings of one metric, one an arm. `blocks`: draw each block."""
    letters = int((frame.label_px - _MARGIN_PX) / (frame.text_px * _LETTER))
    distinctly = distinct(tuple(finding.arm for finding in findings), _LONGEST_LABEL)
    labels = {arm: "\n".join(lines_of(label, letters)) for arm, label in distinctly.items()}
    rows = [_row(finding, labels[finding.arm]) for finding in findings]
    y = alt.Y(
        "arm:N",
        sort=None,
        axis=Axis(
            title=None,
            labelColor=INK,
            labelFontSize=frame.text_px,
            labelExpr=_LINES,
            labelLimit=frame.label_px - _MARGIN_PX,
            minExtent=frame.label_px,
            grid=False,
        ),
    )
    x_axis = alt.X("low:Q").scale(nice=False, padding=14)
    title = f"{metric_named(findings[0].metric).title} relative to {_against(findings, _LONGEST_LABEL)}"
    whole = of_rows(rows)
    measured = whole.transform_filter("isValid(datum.low)")
    pointed = whole.transform_filter("isValid(datum.point)")
    layers = [
        alt.Chart().mark_rule(color=MUTED, strokeWidth=1.5).encode(x=x_datum(0)),
        *([_blocks(findings, labels, y)] if blocks else []),
        measured.mark_bar(color=ACCENT, height=5, cornerRadius=2.5, minBandSize=2).encode(
            x=x_axis.axis(percent_axis(title, tickCount=frame.ticks)), x2=alt.X2("high:Q"), y=y
        ),
        pointed.mark_point(shape="circle", size=90, filled=True, opacity=1, color=ACCENT).encode(
            x=alt.X("point:Q"), y=y
        ),
        whole.transform_filter("isValid(datum.published)")
        .mark_point(
            shape="diamond", size=120, filled=False, strokeWidth=2, opacity=1, color=PUBLISHED, yOffset=-_ABOVE_PX
        )
        .encode(x=alt.X("published:Q"), y=y),
    ]
    if frame.values:
        layers.append(
            whole.mark_text(align="left", color=INK, fontSize=frame.text_px).encode(
                x=x_at(frame.plot_px + 18), y=y, text=alt.Text("words:N")
            )
        )
    chart = alt.layer(*layers).properties(
        width=frame.plot_px, height=alt.Step(_ROW_PX if blocks else _ROW_PX * 2 // 3)
    )
    return themed(chart, frame)


def in_words(findings: Sequence[Finding]) -> str:
    """Describe the chart in words."""
    title = metric_named(findings[0].metric).title
    sentences = [
        f"{plain(one.arm, 60)} {point(one)}, 95 % interval {interval(one.estimate)}"
        + ("" if one.published is None else f", published {percent(one.published)}")
        for one in findings
    ]
    return f"Chart: {title} relative to {_against(findings, 60)}. {'; '.join(sentences)}."


def _against(findings: Sequence[Finding], longest: int) -> str:
    """Return the baseline's name, if all findings share it."""
    names = {finding.baseline for finding in findings}
    return plain(findings[0].baseline, longest) if len(names) == 1 else "each arm's baseline"


def _row(finding: Finding, label: str) -> dict[str, Any]:
    estimate = finding.estimate
    return {
        "arm": label,
        "point": estimate.point,
        "low": estimate.low,
        "high": estimate.high,
        "published": finding.published,
        "words": signed(f"{point(finding)}  {interval(estimate)}"),
    }


def too_many_blocks(findings: Sequence[Finding]) -> bool:
    """Whether the middle 90 % of an arm's blocks are drawn in place of each block."""
    return sum(len(one.blocks) for one in findings) > _MOST_DOTS


def _blocks(findings: Sequence[Finding], labels: dict[str, str], y: alt.Y) -> Any:
    if too_many_blocks(findings):
        ranges = [_middle(one, labels[one.arm]) for one in findings if len(one.blocks) > 1]
        lines = of_rows(ranges).mark_rule(color=INK, opacity=0.5, strokeWidth=2, yOffset=_ABOVE_PX)
        return lines.encode(x=alt.X("from:Q"), x2=alt.X2("to:Q"), y=y)
    dots = [{"arm": labels[one.arm], "effect": effect} for one in findings for _, effect in one.blocks]
    marks = of_rows(dots).mark_point(
        shape="circle", size=26, filled=True, opacity=0.5, color=INK, yOffset=_ABOVE_PX
    )
    return marks.encode(x=alt.X("effect:Q"), y=y)


def _middle(finding: Finding, label: str) -> dict[str, Any]:
    effects = [effect for _, effect in finding.blocks]
    first, *_, last = quantiles(effects, n=_OF_TWENTY, method="inclusive")
    return {"arm": label, "from": first, "to": last}
