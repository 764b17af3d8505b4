"""The metrics shown in tables: those with any known value."""

from __future__ import annotations

from tare.analyze import Analysis
from tare.analyze.metrics import PRIMARY, Metric


def known(analysis: Analysis) -> tuple[Metric, ...]:
    """Return the metrics of all operations together that any run has; the primary one always."""
    return tuple(
        metric
        for metric in analysis.metrics
        if metric.operation is None
        and (metric.name == PRIMARY or any(arm.values[metric.name].n for arm in analysis.arms))
    )


def known_by_operation(analysis: Analysis) -> tuple[Metric, ...]:
    """Return the metrics of single kinds of operations that any run has."""
    return tuple(
        metric
        for metric in analysis.metrics
        if metric.operation is not None and any(arm.values[metric.name].n for arm in analysis.arms)
    )


def compared(analysis: Analysis) -> tuple[Metric, ...]:
    """Return those of `known` in which an arm was compared; the primary one always. Zero has no ratio."""
    estimated = _estimated(analysis)
    return tuple(metric for metric in known(analysis) if metric.name == PRIMARY or metric.name in estimated)


def compared_by_operation(analysis: Analysis) -> tuple[Metric, ...]:
    """Return those of `known_by_operation` in which an arm was compared."""
    estimated = _estimated(analysis)
    return tuple(metric for metric in known_by_operation(analysis) if metric.name in estimated)


def _estimated(analysis: Analysis) -> frozenset[str]:
    return frozenset(one.metric for one in analysis.findings if one.estimate.point is not None)


def published_in(analysis: Analysis, metric: str) -> bool:
    """Whether the source reports any arm's effect on a metric."""
    return any(one.published is not None for one in analysis.findings if one.metric == metric)
