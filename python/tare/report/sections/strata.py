"""Findings by condition: published figures, the source's own method, and tare's estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tare.analyze import Finding
from tare.analyze.metrics import PRIMARY, metric_named
from tare.report.content import Report
from tare.report.figures import percent
from tare.report.plain import plain
from tare.report.section import Column, Section, arm, of_finding

_two_decimals = partial(percent, decimals=2)


def strata(report: Report) -> Iterator[Section]:
    """Yield every stratum, then all together if there are several; nothing if the study has none."""
    parts = report.analysis.strata
    if not parts:
        return
    together = (("all", report.analysis.findings),) if len(parts) > 1 else ()
    metrics = [PRIMARY, *(each.name for each in report.analysis.metrics if _is_shown(each.name, each.operation))]
    telling = [factor for factor in parts[0].levels if len({each.levels[factor] for each in parts}) > 1]
    named = [
        (_words({factor: each.levels[factor] for factor in telling or each.levels}), each.findings)
        for each in parts
    ]
    shown = [
        (words, finding)
        for words, findings in (*named, *together)
        for metric in metrics
        for finding in findings
        if finding.metric == metric
    ]
    published = any(finding.published is not None for _, finding in shown)
    theirs = any(finding.as_published is not None for _, finding in shown)
    columns = (
        Column("condition", left=True),
        Column("metric", left=True),
        arm(),
        Column("n"),
        *([Column("published", _two_decimals)] if published else []),
        *([Column("source's way", _two_decimals)] if theirs else []),
        Column("overhead", of_finding),
    )
    rows = tuple((words, *_row(finding, published=published, theirs=theirs)) for words, finding in shown)
    several = ", and for all together the mean of these changes" if together else ""
    method = f" Source's method: the relative change of averages over runs{several}, without an interval."
    note = f"Overhead and interval are tare's.{method if theirs else ''}"
    title = "By condition, as published and by tare"
    yield Section("strata", title, columns, rows, (note,), under=True, grouped=True)


def _is_shown(name: str, operation: str | None) -> bool:
    return operation is not None and name.endswith("latency_mean")


def _row(finding: Finding, *, published: bool, theirs: bool) -> Sequence[object]:
    of_source = None if finding.as_published is None else finding.as_published.point
    return (
        metric_named(finding.metric).short.removesuffix(" latency"),
        plain(finding.arm, 40),
        finding.estimate.n,
        *([finding.published] if published else []),
        *([of_source] if theirs else []),
        finding,
    )


def _words(levels: Mapping[str, str]) -> str:
    return ", ".join(f"{plain(factor, 30)} {plain(level, 30)}" for factor, level in levels.items())
