"""The content of a trend, independent of its format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tare.analyze.comparison import Recorded
from tare.analyze.metrics import metric_named
from tare.analyze.trend import FEWEST_STORES, Point, Series, Step, by_store
from tare.plan.extension import shared
from tare.report.comparison.surroundings import Unlike, surroundings
from tare.report.figures import decimals_of, interval, moment, percent
from tare.report.plain import plain

READING = (
    "Each line is a store, in time. A change is by how much the ratio of arm to baseline is higher from there on: "
    "-3 % in throughput is a larger loss. Stores vary by more than their own intervals; that is allowed for, and "
    "so is that every place was tried. A change that is not shown may still be there."
)
_NAMED = 3


@dataclass(frozen=True)
class Kept:
    """A store of the trend, and when its first run began (`None`: it has none)."""

    name: str
    recorded: Recorded
    began_at: float | None


@dataclass(frozen=True)
class Trend:
    """`unlike`: store → what differs from the store before it, for stores that a change begins with."""

    stores: tuple[Kept, ...]
    series: tuple[Series, ...]
    unlike: dict[int, tuple[Unlike, ...]]

    @property
    def answer(self) -> str:
        """What changed, and where, in a sentence; never that nothing has."""
        found = by_store(self.series)
        if not found:
            few = f"; change points need {FEWEST_STORES} stores with an interval" if not self._enough else ""
            return f"No change was shown in {len(self.series)} series{few}."
        return " ".join(
            f"From {plain(self.stores[at].name, 60)} on: {'; '.join(step_words(*each) for each in steps)}."
            for at, steps in found.items()
        )

    @property
    def _enough(self) -> bool:
        return any(each.between is not None for each in self.series)


def build_trend(stores: Sequence[Kept], series: Sequence[Series]) -> Trend:
    """Collect what is shown beside the figures."""
    unlike = {}
    for at in by_store(series):
        before, after = stores[at - 1].recorded, stores[at].recorded
        common = shared(before.plan, after.plan)
        arms = {*common.arms, *(after.plan.study.baseline_of(arm) for arm in common.arms)}
        unlike[at] = surroundings(before.records, after.records, tuple(arms), common.differences)
    return Trend(tuple(stores), tuple(series), unlike)


def step_words(series: Series, step: Step) -> str:
    """Return a change in words: `bridge, throughput -11.2 % [-12.0, -10.4]`."""
    title = metric_named(series.metric).title
    point = percent(step.estimate.point, decimals_of(step.estimate))
    return f"{plain(series.arm, 60)}, {title} {point} [{interval(step.estimate)}]"


def when(kept: Kept) -> str:
    """Return when a store's first run began."""
    return "\N{EM DASH}" if kept.began_at is None else moment(kept.began_at)


def note(trend: Trend, series: Series, point: Point) -> str:
    """Return what a line says beside its figures: a change with what else changed, or why it decides nothing."""
    step = next((each for each in series.steps if each.at == point.store), None)
    if step is None:
        return plain(point.why or "", 120)
    change = f"{percent(step.estimate.point, decimals_of(step.estimate))} [{interval(step.estimate)}] from here on"
    differing = [
        f"{each.name}: {each.a} \N{RIGHTWARDS ARROW} {each.b}" for each in trend.unlike.get(point.store, ())
    ]
    more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
    return plain(f"{change}; {'; '.join(differing[:_NAMED])}{more}" if differing else change, 400)


def rows(trend: Trend, series: Series) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield a row for each store: when, name, blocks, overhead, interval, note."""
    for point in series.points:
        estimate, kept = point.finding.estimate, trend.stores[point.store]
        figures = (percent(estimate.point, decimals_of(estimate)), interval(estimate))
        yield when(kept), plain(kept.name, 60), str(estimate.n), *figures, note(trend, series, point)


def title(series: Series) -> str:
    """Return the heading of a series."""
    return f"{plain(series.arm, 80)}: {metric_named(series.metric).title}"
