"""The effect on each of several sites, a panel for each arm: the mean, and the prediction for another site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tare.analyze import Finding
from tare.analyze.estimate import OverSites
from tare.report.charts.theme import ACCENT, INK, MUTED, Axis, Frame, of_rows, percent_axis, themed, x_at, y_at
from tare.report.figures import percent
from tare.report.plain import distinct, plain

MOST_ARMS = 12
MOST_NAMED = 40
"""Up to this many, sites have names; more are lines without names."""
_ROW_PX, _THIN_PX = 20, 5
_GAP_PX = 68
_LONGEST_LABEL = 30
_MOST_LISTED = 12


def drawable(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings over several sites, as many as fit."""
    return [finding for finding in findings if finding.over_sites is not None][:MOST_ARMS]


def sites(findings: Sequence[Finding], frame: Frame) -> dict[str, Any]:
    """Return the Vega-Lite specification; each panel has its own scale, so that small differences are visible."""
    titles = distinct(tuple(finding.arm for finding in findings), frame.panel_label)
    panels = [_panel(finding.over_sites, titles[finding.arm], frame) for finding in findings if finding.over_sites]
    return themed(alt.vconcat(*panels, bounds="flush", spacing=_GAP_PX), frame)


def _panel(over: OverSites, title: str, frame: Frame) -> Any:
    named = len(over.sites) <= MOST_NAMED
    rows = of_rows(_rows(over, distinct(tuple(site.site for site in over.sites), _LONGEST_LABEL)))
    only = {kind: rows.transform_filter(f"datum.kind == '{kind}'") for kind in ("site", "mean", "next", "zero")}
    axis = Axis(
        title=None, labels=named, ticks=False, grid=False, labelColor=INK, labelFontSize=frame.text_px - 1,
        labelLimit=frame.label_px - 10, minExtent=frame.label_px,
    )  # fmt: skip
    y = alt.Y("site:N", sort=None, axis=axis)
    x = alt.X("low:Q").scale(zero=False, nice=False, padding=14)
    x = x.axis(percent_axis("effect on throughput", tickCount=frame.ticks))
    layers = [
        only["next"].mark_rect(color=MUTED, opacity=0.14).encode(x=x, x2=alt.X2("high:Q")),
        only["mean"].mark_rect(color=ACCENT, opacity=0.22).encode(x=x, x2=alt.X2("high:Q")),
        only["zero"].mark_rule(color=MUTED, strokeWidth=1.5).encode(x=alt.X("point:Q")),
        only["mean"].mark_rule(color=ACCENT, strokeWidth=2).encode(x=alt.X("point:Q")),
        only["site"]
        .transform_filter("isValid(datum.low)")
        .mark_rule(color=INK, strokeWidth=1, opacity=0.6)
        .encode(x=x, x2=alt.X2("high:Q"), y=y),
        only["site"]
        .mark_point(shape="circle", size=42 if named else 12, filled=True, opacity=1, color=INK)
        .encode(x=alt.X("point:Q"), y=y),
        of_rows([{}])
        .mark_text(
            align="left", baseline="bottom", fontWeight="bold", fontSize=frame.text_px, color=INK, text=title
        )
        .encode(x=x_at(0), y=y_at(-8)),
    ]
    return alt.layer(*layers).properties(width=frame.plot_px, height=alt.Step(_ROW_PX if named else _THIN_PX))


def _rows(over: OverSites, labels: dict[str, str]) -> list[dict[str, Any]]:
    ordered = over.sites if len(over.sites) <= MOST_NAMED else sorted(over.sites, key=lambda site: site.point)
    rows: list[dict[str, Any]] = [
        {"kind": "site", "site": labels[each.site], "point": each.point, "low": each.low, "high": each.high}
        for each in ordered
    ]
    estimate = over.estimate
    if estimate.low is not None and estimate.high is not None:
        rows.append({"kind": "mean", "point": estimate.point, "low": estimate.low, "high": estimate.high})
    if over.next_low is not None and over.next_high is not None:
        rows.append({"kind": "next", "low": over.next_low, "high": over.next_high})
    reach = [row[end] for row in rows for end in ("low", "high", "point") if row.get(end) is not None]
    if min(reach) <= 0 <= max(reach):
        rows.append({"kind": "zero", "point": 0.0})
    return rows


def in_words(findings: Sequence[Finding]) -> str:
    """Describe the chart in words."""
    sentences = [
        f"{plain(each.arm, 60)}: {_sentence(each.over_sites)}" for each in findings if each.over_sites is not None
    ]
    return f"Chart: the effect on throughput on each site. {'; '.join(sentences)}."


def _sentence(over: OverSites) -> str:
    ordered = sorted(over.sites, key=lambda site: site.point)
    if len(ordered) <= _MOST_LISTED:
        listed = ", ".join(f"{plain(site.site, 40)} {percent(site.point)}" for site in ordered)
    else:
        ends = f"{percent(ordered[0].point)} to {percent(ordered[-1].point)}"
        listed = f"{len(ordered)} sites, {ends}"
    if over.next_low is None or over.next_high is None:
        return f"{listed}; no prediction for another site"
    return f"{listed}; on another site {percent(over.next_low)} to {percent(over.next_high)} is expected"
