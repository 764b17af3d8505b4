"""What the intervals of a protocol are made of, in words."""

from __future__ import annotations

from collections.abc import Mapping

from tare.analyze import Analysis
from tare.analyze.arms import ArmSummary
from tare.analyze.estimate import Estimate
from tare.analyze.published import pooled_windows, welch
from tare.plural import counted
from tare.protocols import as_published
from tare.study.model import Study

_UNITS = {welch.METHOD: "run", pooled_windows.METHOD: "window"}
_PUBLISHED: Mapping[str, str] = {
    "fixed": "Column n counts the runs a side, which are not paired; intervals are Welch's, on the difference of "
    "means. They miss more often than one time in twenty",
    "buckets": "Column n counts the windows a side, of all runs in one pot; intervals are z = 1.96 standard errors "
    "of the difference of their means. They miss far more often than one time in twenty",
}
"""Of the published baselines; all others pair runs by block."""


def units(estimate: Estimate) -> str:
    """`8 blocks`, `5 runs a side`, `50 windows a side`."""
    unit = _UNITS.get(estimate.method)
    return counted(estimate.n, "block") if unit is None else f"{counted(estimate.n, unit)} a side"


def runs_of_baseline(analysis: Analysis, baseline: ArmSummary) -> str:
    """Its good runs, for a column that counts what estimates are made of; empty where those count windows."""
    counts_windows = any(finding.estimate.method == pooled_windows.METHOD for finding in analysis.findings)
    return "" if counts_windows else str(baseline.good)


def is_paired(estimate: Estimate) -> bool:
    """Whether only blocks with a good run of both sides count, as in all but published ways."""
    return estimate.method not in _UNITS


def why_no_interval(analysis: Analysis, metric: str) -> str | None:
    """Why no arm has an interval in a metric, as a part of a sentence; `None` where one has, or there is no arm."""
    found = [one.estimate for one in analysis.findings if one.metric == metric]
    if not found or any(each.low is not None for each in found):
        return None
    return "there is no interval: " + ", ".join(dict.fromkeys(each.why or "nothing was measured" for each in found))


def unpaired(study: Study) -> str | None:
    """Two sentences without the last full stop, `None` where runs are paired by block and judged by t."""
    return _PUBLISHED.get(study.protocol.name) if as_published(study) else None
