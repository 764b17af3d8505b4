"""Sections of a page that have charts only: one for each metric beside throughput and the 95th percentile."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.metrics import METRICS, PRIMARY, Metric
from tare.report.content import Report
from tare.report.section import PAGE, Section

_MOST = 24
"""Most charts of metrics; with kinds of operations there may be very many."""
_ELSEWHERE = (PRIMARY, METRICS["latency_p95"].name)
"""Metrics with a chart in another section."""


def charted(report: Report) -> tuple[Metric, ...]:
    """Return the metrics with a chart here: those in which an arm was compared."""
    pointed = {one.metric for one in report.analysis.findings if one.estimate.point is not None}
    others = [metric for metric in report.analysis.metrics if metric.name not in _ELSEWHERE][:_MOST]
    return tuple(metric for metric in others if metric.name in pointed)


def metrics(report: Report) -> Iterator[Section]:
    """Yield the section of these charts, if there are any."""
    if charted(report):
        yield Section("metrics", "Metric by metric", formats=PAGE)
