"""The charts of a page, each drawn for every width that it may be shown at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from tare.analyze import Finding
from tare.analyze.metrics import PRIMARY
from tare.report.charts import blocks as blocks_chart
from tare.report.charts import climb, components, effects, overheads, shift, timelines, views
from tare.report.charts import laid_over as laid_over_chart
from tare.report.charts import sites as sites_chart
from tare.report.charts.theme import FRAMES, Frame, draw
from tare.report.content import Report
from tare.report.sections.climb import climbs

Specification = Callable[[Frame], dict[str, Any]]
LATENCY = "latency_p95"
_MOST_OTHER = 24
"""Most charts of metrics beside throughput and latency; with kinds of operations there may be very many."""


@dataclass(frozen=True)
class Figure:
    """A chart in every frame, as SVG."""

    name: str
    drawings: tuple[tuple[str, Markup], ...]
    """(Name of the frame, SVG)"""


@dataclass(frozen=True)
class Chart:
    """A chart that has data. `label`: read out in place of it."""

    name: str
    specification: Specification
    label: str


def drawings(report: Report) -> dict[str, Figure]:
    """Draw the charts that have data."""
    return {each.name: figure(each.name, each.specification, each.label) for each in charts(report)}


def charts(report: Report) -> Iterator[Chart]:
    """Yield the charts that have data; charts of further metrics are named `metric-NAME`."""
    throughput, latency = (pointed(report, metric) for metric in (PRIMARY, LATENCY))
    if throughput:
        yield _forest("throughput", throughput)
        yield Chart("blocks", partial(blocks_chart.blocks, throughput), blocks_chart.in_words(throughput))
    if several := sites_chart.drawable(throughput):
        yield Chart("sites", partial(sites_chart.sites, several), sites_chart.in_words(several))
    if curves := climbs(report)[: climb.MOST_ARMS]:
        yield Chart("climb", partial(climb.climb, curves), climb.in_words(curves))
    if latency:
        yield _forest("latency", latency)
    for metric in [each.name for each in report.analysis.metrics if each.name not in (PRIMARY, LATENCY)][
        :_MOST_OTHER
    ]:
        if with_points := pointed(report, metric):
            yield _forest(f"metric-{metric}", with_points, blocks=False)
    if report.shifts:
        shown = report.shifts[: shift.MOST_ROWS]
        yield Chart("shift", partial(shift.shift, shown), shift.in_words(shown))
    moved = [each for each in report.effects if each.metric == PRIMARY and each.estimate.point is not None]
    if moved:
        moved = effects.drawable(moved)
        yield Chart("effects", partial(effects.effects, moved), effects.in_words(moved))
    explained = () if report.explanation is None else components.drawable(report.explanation.arms)
    if explained:
        yield Chart("components", partial(components.components, explained), components.in_words(explained))
    yield from _of_runs(report)


def _of_runs(report: Report) -> Iterator[Chart]:
    """Yield charts of single runs, read from their traces."""
    if report.timelines is not None and report.timelines.runs:
        lines = report.timelines
        yield Chart("timelines", partial(timelines.timelines, lines), timelines.in_words(lines))
    if report.laid_over is not None and any(run.points for run in report.laid_over.runs):
        over = report.laid_over
        yield Chart("laid-over", partial(laid_over_chart.laid_over, over), laid_over_chart.in_words(over))
    if report.views is not None and views.drawable(report.views):
        yield Chart("views", partial(views.views, report.views), views.in_words(report.views))


def pointed(report: Report, metric: str) -> Sequence[Finding]:
    """Return the findings of a metric that have at least a point."""
    findings = (finding for finding in report.analysis.findings if finding.metric == metric)
    return [finding for finding in findings if finding.estimate.point is not None]


def figure(name: str, specification: Specification, label: str) -> Figure:
    """Draw a chart. `label`: read out in place of it."""
    # Vega-Lite refuses errors; validating each part against the schema as well takes longer than drawing.
    with debug_mode(arg=False):
        drawn = [
            (frame.name, Markup(draw(specification(frame), f"{name}-{frame.name}", label)))  # noqa: S704 - made by Vega
            for frame in FRAMES
        ]
    return Figure(name, tuple(drawn))


def _forest(name: str, findings: Sequence[Finding], *, blocks: bool = True) -> Chart:
    return Chart(name, partial(overheads.overheads, findings, blocks=blocks), overheads.in_words(findings))
