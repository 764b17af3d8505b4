"""Main effects and interactions as rows of text: a row for each effect, a column for each metric."""

from __future__ import annotations

from dataclasses import dataclass

from tare.analyze.factorial import Effect, Step
from tare.report.content import Report
from tare.report.figures import NONE, decimals_of, interval, percent
from tare.report.known import known
from tare.report.plain import plain
from tare.run.emulated import MARK, marked


@dataclass(frozen=True)
class EffectCell:
    """An effect on one metric. `apart`: its interval excludes zero."""

    point: str
    interval: str
    apart: bool


@dataclass(frozen=True)
class EffectRow:
    """One effect. `against`: reference levels of its steps. `between`: blocks are compared with other blocks."""

    name: str
    against: str
    n: int
    interaction: bool
    between: bool
    cells: tuple[EffectCell, ...]


@dataclass(frozen=True)
class EffectRows:
    """All effects. `titles`: of the metrics' columns."""

    titles: tuple[str, ...]
    main: tuple[EffectRow, ...]
    two: tuple[EffectRow, ...]

    @property
    def between(self) -> bool:
        """Whether blocks are compared with other blocks in any row."""
        return any(row.between for row in (*self.main, *self.two))


def effect_rows(report: Report) -> EffectRows:
    """Return all effects; metrics in the order of the report's tables."""
    metrics = [each for each in known(report.analysis) if any(one.metric == each.name for one in report.effects)]
    grouped: dict[tuple[Step, ...], dict[str, Effect]] = {}
    for effect in report.effects:
        grouped.setdefault(effect.steps, {})[effect.metric] = effect
    rows = [_row(by_metric, [each.name for each in metrics]) for by_metric in grouped.values()]
    return EffectRows(
        tuple(each.short for each in metrics),
        tuple(row for row in rows if not row.interaction),
        tuple(row for row in rows if row.interaction),
    )


def _row(by_metric: dict[str, Effect], metrics: list[str]) -> EffectRow:
    first = next(iter(by_metric.values()))
    return EffectRow(
        name=name(first),
        against=", ".join(plain(step.reference, 24) for step in first.steps),
        n=max(each.estimate.n for each in by_metric.values()),
        interaction=first.interaction,
        between=not first.within_blocks,
        cells=tuple(_cell(by_metric.get(metric)) for metric in metrics),
    )


def _cell(effect: Effect | None) -> EffectCell:
    if effect is None:
        return EffectCell(NONE, NONE, apart=False)
    estimate = effect.estimate
    apart = estimate.low is not None and estimate.high is not None and (estimate.low > 0 or estimate.high < 0)
    return EffectCell(percent(estimate.point, decimals_of(estimate)), interval(estimate), apart)


def name(effect: Effect) -> str:
    """Name an effect: `deployment container`, or `deployment container x disk overlay` for two factors."""
    called = f" {chr(0x00D7)} ".join(_step(step) for step in effect.steps)
    return marked(called, MARK if effect.emulated else None)


def _step(step: Step) -> str:
    return f"{plain(step.factor, 24)} {plain(step.level, 24)}"
