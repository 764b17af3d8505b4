"""The overhead of each arm over many stores of one study, in time, and where it changed. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tare.analyze.analysis import analyze
from tare.analyze.comparison import Recorded
from tare.analyze.estimate import Estimate, Finding
from tare.analyze.statistics.intervals import FEWEST_BLOCKS, Term, WelchT, term
from tare.plan.extension import shared
from tare.protocols.anytime import NO_SPREAD

METHOD = "binary-segmentation-welch"
FEWEST_STORES = 5
"""Fewer do not show how much stores differ by chance."""
ALPHA = 0.05
_MEDIAN_OF_CHI2 = 0.4549364231195724
"""Factor of chi-squared with one degree of freedom: median of squares → variance, whatever a few steps do."""


@dataclass(frozen=True)
class Point:
    """An arm's overhead in one store. `store`: its place in the series, in time; `why`: why it decides nothing."""

    store: int
    finding: Finding
    why: str | None = None


@dataclass(frozen=True)
class Step:
    """A change: from the store `at` on, the ratio of arm to baseline is another. `p`: adjusted for where it is."""

    at: int
    estimate: Estimate
    p: float


@dataclass(frozen=True)
class Series:
    """One arm in one metric. `between`: standard deviation from store to store beyond their own, a log ratio."""

    arm: str
    metric: str
    points: tuple[Point, ...]
    between: float | None
    steps: tuple[Step, ...]


def trend(stores: Sequence[Recorded], metrics: Sequence[str]) -> tuple[Series, ...]:
    """Return a series for each arm that all stores have, in each metric; `stores` are in time.

    Raises `NotComparable` if the studies differ.
    """
    arms = list(shared(stores[0].plan, stores[-1].plan).arms)
    for each in stores[1:-1]:
        common = shared(stores[0].plan, each.plan).arms
        arms = [arm for arm in arms if arm in common]
    analyses = [analyze(each.plan.study, each.records) for each in stores]
    return tuple(
        series_of(arm, metric, [(each.finding(arm, metric), each.invalid) for each in analyses])
        for metric in metrics
        if all(metric in {known.name for known in each.metrics} for each in analyses)
        for arm in arms
    )


def series_of(arm: str, metric: str, findings: Sequence[tuple[Finding, bool]]) -> Series:
    """Return the series of an arm's findings in time, each with whether its store is invalid."""
    points = tuple(Point(at, finding, _why_not(finding, invalid)) for at, (finding, invalid) in enumerate(findings))
    logs = {
        each.store: [math.log1p(effect) for _, effect in each.finding.blocks] for each in points if not each.why
    }
    if len(logs) < FEWEST_STORES:
        return Series(arm, metric, points, None, ())
    known = [_Known(at, float(np.mean(values)), term(values)) for at, values in logs.items()]
    between = _between(known)
    steps = sorted(_steps(known, between, len(known) - 1), key=lambda step: step.at)
    return Series(arm, metric, points, math.sqrt(between), tuple(steps))


def _why_not(finding: Finding, invalid: bool) -> str | None:  # noqa: FBT001 - of one call
    if invalid:
        return "the control differs from its baseline"
    ratios = [math.log1p(effect) for _, effect in finding.blocks]
    if len(ratios) < FEWEST_BLOCKS:
        return finding.estimate.why or "too few blocks"
    return "the same ratio in every block" if float(np.std(ratios, ddof=1)) < NO_SPREAD else None


@dataclass(frozen=True)
class _Known:
    """A store with an interval: mean log ratio, and the variance of that mean."""

    at: int
    mean: float
    own: Term


def _between(known: Sequence[_Known]) -> float:
    """Variance from store to store beyond the stores' own: from successive differences, of which steps are few.

    The median of the squares estimates their variance; half of it, less the mean of the stores' own variances, is
    what is left. Von Neumann, "Distribution of the ratio of the mean square successive difference to the variance",
    Annals of Mathematical Statistics 12 (1941), with a median in place of the mean.
    """
    apart = np.diff([each.mean for each in known])
    total = float(np.median(apart**2)) / _MEDIAN_OF_CHI2 / 2
    return max(0.0, total - float(np.mean([each.own.variance for each in known])))


def _steps(known: Sequence[_Known], between: float, freedom: int) -> Iterator[Step]:
    """Binary segmentation: split where the difference is least probable, while it is significant; then each part.

    Each place of a segment is tried, so its p value is multiplied by their number (Bonferroni). Scott & Knott, "A
    cluster analysis method for grouping means in the analysis of variance", Biometrics 30 (1974).
    """
    tried = [(_test(known[:at], known[at:], between, freedom), at) for at in range(1, len(known))]
    if not tried:
        return
    (apart, t), at = min(tried, key=lambda each: each[0][1].p_zero(each[0][0]))
    p = min(1.0, t.p_zero(apart) * len(tried))
    if p >= ALPHA:
        return
    reach = t.reach(1 - ALPHA)
    ends = (math.expm1(apart), math.expm1(apart - reach), math.expm1(apart + reach))
    yield Step(known[at].at, Estimate(*ends, len(known), 1 - ALPHA, METHOD), p)
    yield from _steps(known[:at], between, freedom)
    yield from _steps(known[at:], between, freedom)


def _test(before: Sequence[_Known], after: Sequence[_Known], between: float, freedom: int) -> tuple[float, WelchT]:
    """Return the difference of two segments' means, a log ratio, with its error by Welch and Satterthwaite."""
    terms = [Term(each.own.variance / len(part) ** 2, each.own.n) for part in (before, after) for each in part]
    of_stores = between * (1 / len(before) + 1 / len(after))
    variance = sum(each.variance for each in terms) + of_stores
    below = sum(each.variance**2 / (each.n - 1) for each in terms) + of_stores**2 / freedom
    apart = float(np.mean([each.mean for each in after]) - np.mean([each.mean for each in before]))
    return apart, WelchT(math.sqrt(variance), variance**2 / below)


def by_store(series: Sequence[Series]) -> Mapping[int, tuple[tuple[Series, Step], ...]]:
    """Store → the changes that begin with it."""
    found: dict[int, list[tuple[Series, Step]]] = {}
    for each in series:
        for step in each.steps:
            found.setdefault(step.at, []).append((each, step))
    return {at: tuple(steps) for at, steps in sorted(found.items())}
