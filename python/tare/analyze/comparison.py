"""Comparison of two stores of one study: changes of each arm's overhead. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tare.analyze.analysis import Analysis, analyze
from tare.analyze.estimate import Estimate, Finding
from tare.analyze.metrics import PRIMARY, Metric
from tare.analyze.runs import Runs, select_runs
from tare.analyze.statistics.intervals import FEWEST_BLOCKS, term, welch_t
from tare.analyze.verdict import holm
from tare.plan.extension import Shared, shared
from tare.plan.model import Plan
from tare.protocols.anytime import NO_SPREAD
from tare.protocols.registry import as_published
from tare.protocols.stopping import Rule
from tare.record.run_record import RunRecord

METHOD = "welch-log-ratios"


@dataclass(frozen=True)
class Difference:
    """`estimate`: exp(mean log ratio in B - mean log ratio in A) - 1. `p_zero`: p value of no difference."""

    estimate: Estimate
    p_zero: float | None = None


def difference(a: Sequence[float], b: Sequence[float], alpha: float = 0.05) -> Difference:
    """Estimate the difference from the ratios arm/baseline of the blocks of two studies, all above 0.

    With m the means of their logs: Δ = m_B - m_A, interval Δ ± t(f, 1 - alpha/2) · SE, with SE and f by `welch_t`:
    the studies share no run, so their blocks are not paired, and two machines have no common variance. `alpha` is
    below 0.05 if studies stopped by looks.
    """
    n = min(len(a), len(b))
    if n == 0:
        return _without(None, n, "one study has no block with good runs of both arm and baseline")
    logs = [np.log(np.asarray(ratios, dtype=float)) for ratios in (a, b)]
    apart = float(logs[1].mean() - logs[0].mean())
    if n < FEWEST_BLOCKS:
        return _without(math.expm1(apart), n, f"an interval needs {FEWEST_BLOCKS} blocks of both studies")
    known = welch_t(map(term, logs))
    if known is None or min(float(each.std(ddof=1)) for each in logs) < NO_SPREAD:
        return _without(math.expm1(apart), n, "the same ratio in every block of a study, so the spread is unknown")
    reach = known.reach(1 - alpha)
    estimate = Estimate(math.expm1(apart), math.expm1(apart - reach), math.expm1(apart + reach), n, 0.95, METHOD)
    return Difference(estimate, p_zero=known.p_zero(apart))


def _without(point: float | None, n: int, why: str) -> Difference:
    return Difference(Estimate(point, None, None, n, 0.95, METHOD, why))


@dataclass(frozen=True)
class Recorded:
    """A study's plan and its records."""

    plan: Plan
    records: Sequence[RunRecord]


@dataclass(frozen=True)
class Change:
    """One arm in one metric: its overhead in A and in B, and their difference.

    `p_zero` is adjusted by Holm over the `family`: the arms for throughput, arms times metrics for all other
    metrics together. `changed`: `p_zero` excludes zero, and the difference is larger than what both generators can
    resolve.
    """

    arm: str
    metric: str
    a: Finding
    b: Finding
    difference: Difference
    p_zero: float | None = None
    family: int = 1
    below_resolution: bool = False
    changed: bool = False


@dataclass(frozen=True)
class Comparison:
    """`changes`: arms in A's order, in every common metric. `withheld`: why no change is claimed."""

    a: Analysis
    b: Analysis
    shared: Shared
    changes: tuple[Change, ...]
    withheld: str | None

    def change(self, arm: str, metric: str) -> Change:
        """Change of an arm in a metric; raises `KeyError` if there is none."""
        for each in self.changes:
            if each.arm == arm and each.metric == metric:
                return each
        raise KeyError(f"{arm}, {metric}")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that both studies have for any arm."""
        known = (each.metric for each in self.changes if each.difference.estimate.point is not None)
        return tuple(dict.fromkeys(known))

    @property
    def compared(self) -> bool:
        """Whether any difference has an interval."""
        return any(each.difference.estimate.low is not None for each in self.changes)


def compare(a: Recorded, b: Recorded) -> Comparison:
    """Compare two stores of one study. Raises `NotComparable` if the studies differ."""
    common = shared(a.plan, b.plan)
    analyses = [analyze(each.plan.study, each.records) for each in (a, b)]
    alpha = min(Rule.of(each.plan.study.protocol).alpha for each in (a, b))
    withheld = _withheld(a, b, *analyses)
    runs = [select_runs(each.plan.study, each.records) for each in (a, b)]
    changes = _adjusted(tuple(_changes(analyses, runs, common.arms, alpha)))
    judged = tuple(replace(each, changed=withheld is None and _changed(each, alpha)) for each in changes)
    return Comparison(analyses[0], analyses[1], common, judged, withheld)


def _withheld(a: Recorded, b: Recorded, in_a: Analysis, in_b: Analysis) -> str | None:
    for label, each, analysis in (("A", a, in_a), ("B", b, in_b)):
        if analysis.invalid:
            return f"the control of {label} differs from its baseline, so that study is invalid"
        name = each.plan.study.protocol.name
        if as_published(each.plan.study):
            return f"the protocol {name} of {label} repeats a published method, whose intervals are too narrow"
    return None


def _changes(
    analyses: Sequence[Analysis], runs: Sequence[Runs], arms: Sequence[str], alpha: float
) -> Iterator[Change]:
    """Yield each arm in every metric that both studies have."""
    known = {metric.name for metric in analyses[1].metrics}
    for arm in arms:
        for metric in (each for each in analyses[0].metrics if each.name in known):
            one, other = (each.finding(arm, metric.name) for each in analyses)
            change = difference(_ratios(one), _ratios(other), alpha)
            why = _source_mismatch(metric, (arm, one.baseline), runs)
            change = change if why is None else _without_estimate(change, why)
            yield Change(
                arm, metric.name, one, other, change, below_resolution=_below_resolution(change, one, other)
            )


def _without_estimate(change: Difference, why: str) -> Difference:
    return Difference(replace(change.estimate, point=None, low=None, high=None, why=why))


def _ratios(finding: Finding) -> list[float]:
    return [1 + effect for _, effect in finding.blocks]


def _source_mismatch(metric: Metric, arms: Sequence[str], runs: Sequence[Runs]) -> str | None:
    """Why the values of the two studies cannot be compared: another source counted them; `None` if they can."""
    if metric.source is None:
        return None
    by = [{metric.source(run) for (_, arm), run in each.good.items() if arm in arms} - {None} for each in runs]
    if by[0] == by[1] or not by[0] or not by[1]:
        return None
    names = [" and ".join(sorted(str(each) for each in side)) for side in by]
    return f"counted by {names[0]} in A and by {names[1]} in B"


def _below_resolution(change: Difference, one: Finding, other: Finding) -> bool:
    """Whether the difference is no larger than the histogram buckets of both studies together."""
    widths = [each.resolution for each in (one, other) if each.resolution is not None]
    point = change.estimate.point
    return bool(widths) and point is not None and abs(math.log1p(point)) <= sum(math.log1p(each) for each in widths)


def _adjusted(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Adjust p values by Holm: throughput over arms, secondary metrics over arms and metrics together."""
    families = [[each for each in changes if (each.metric == PRIMARY) is primary] for primary in (True, False)]
    p: dict[tuple[str, str], tuple[float, int]] = {}
    for family in families:
        raw: Mapping[str, float] = {
            str(n): each.difference.p_zero for n, each in enumerate(family) if each.difference.p_zero is not None
        }
        p |= {(family[int(n)].arm, family[int(n)].metric): (value, len(raw)) for n, value in holm(raw).items()}
    return tuple(
        replace(each, p_zero=p[each.arm, each.metric][0], family=p[each.arm, each.metric][1])
        if (each.arm, each.metric) in p
        else each
        for each in changes
    )


def _changed(change: Change, alpha: float) -> bool:
    return change.p_zero is not None and change.p_zero < alpha and not change.below_resolution
