"""Main effects and interactions: a row for each effect, a column for each metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tare.analyze.factorial import Effect, Step
from tare.analyze.metrics import Metric
from tare.record.emulated import MARK, marked
from tare.report.content import Report
from tare.report.known import known
from tare.report.plain import plain
from tare.report.section import MARKDOWN, PAGES, Cell, Column, Remark, Section, change
from tare.report.words.answer import interval_kind

_OPEN_ROWS = 8
"""Most interactions that a page shows without being asked."""


def effects(report: Report) -> Iterator[Section]:
    """Yield main effects and interactions, metrics in the order of the other tables."""
    metrics = [each for each in known(report.analysis) if any(one.metric == each.name for one in report.effects)]
    grouped: dict[tuple[Step, ...], dict[str, Effect]] = {}
    for effect in report.effects:
        grouped.setdefault(effect.steps, {})[effect.metric] = effect
    if not grouped:
        return
    between = any(not _first(by_metric).within_blocks for by_metric in grouped.values())
    yield Section("effects", "Effect of each factor", note=_note(report, between=between), formats=PAGES)
    for title, interaction in (("Main effects", False), ("Two-way interactions", True)):
        chosen = [by_metric for by_metric in grouped.values() if _first(by_metric).interaction is interaction]
        if chosen:
            yield _table(title, chosen, metrics)


def _note(report: Report, *, between: bool) -> tuple[str, ...]:
    sentence = (
        "Each block gives one number, the contrast of the logarithms of its runs; 95 % "
        f"{interval_kind(report.study)} over blocks, not adjusted for multiple comparisons."
    )
    starred = (
        "*: all runs of a block share this condition, so blocks are compared with other blocks, by Welch's t; the "
        "effect includes whatever else changed between them."
    )
    return (sentence, starred) if between else (sentence,)


def _table(title: str, chosen: Sequence[Mapping[str, Effect]], metrics: Sequence[Metric]) -> Section:
    columns = (
        Column(title.lower(), left=True),
        Column("against", left=True, formats=MARKDOWN),
        Column("n"),
        *(Column(each.short, _estimate) for each in metrics),
    )
    rows = tuple(_row(by_metric, metrics) for by_metric in chosen)
    fold = title if len(rows) > _OPEN_ROWS and _first(chosen[0]).interaction else ""
    return Section(title.lower().replace(" ", "-"), title, columns, rows, under=True, fold=fold, formats=PAGES)


def _row(by_metric: Mapping[str, Effect], metrics: Sequence[Metric]) -> tuple[object, ...]:
    first = _first(by_metric)
    against = ", ".join(plain(step.reference, 24) for step in first.steps)
    starred = "" if first.within_blocks else "*"
    return (
        Cell(f"{name(first)}{starred}", remarks=(Remark(f"against {against}"),)),
        against,
        max(each.estimate.n for each in by_metric.values()),
        *(by_metric.get(each.name) for each in metrics),
    )


def _first(by_metric: Mapping[str, Effect]) -> Effect:
    return next(iter(by_metric.values()))


def _estimate(effect: Effect) -> Cell:
    return change(effect.estimate)


def name(effect: Effect) -> str:
    """Name an effect: `deployment container`, or `deployment container x disk overlay` for two factors."""
    called = f" {chr(0x00D7)} ".join(_step(step) for step in effect.steps)
    return marked(called, MARK if effect.emulated else None)


def _step(step: Step) -> str:
    return f"{plain(step.factor, 24)} {plain(step.level, 24)}"
