"""`tare check`: compare each overhead with a limit. Intervals decide, never points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tare.analyze.analysis import Analysis
from tare.analyze.answer import hidden_words
from tare.analyze.estimate import Estimate, Finding
from tare.analyze.metrics import metric_named
from tare.protocols.registry import as_published
from tare.study.model import Study


class Outcome(StrEnum):
    """The result of checking an overhead against a limit."""

    PASS = "pass"  # noqa: S105 - no password
    """The whole interval lies within the limit."""
    FAIL = "fail"
    """The whole interval lies beyond the limit, or the study is invalid."""
    INCONCLUSIVE = "inconclusive"
    """The limit is inside the interval, or there is no interval."""
    TOO_NOISY = "too-noisy"
    """The interval decides, but the study could hide a bias larger than the limit."""


@dataclass(frozen=True)
class LimitCheck:
    """One arm's overhead in one metric against the limit."""

    arm: str
    baseline: str
    metric: str
    most: float
    """The limit: by how much it may be worse, a fraction of the baseline; positive for every metric."""
    outcome: Outcome
    point: float | None
    """Overhead as a fraction of the baseline, with the sign of a report: -0.05 is 5 % less throughput."""
    low: float | None
    high: float | None
    n: int
    confidence: float
    resolution: float | None
    """By how much `low` and `high` are widened: the resolution of the generator's histogram."""
    why: str | None = None
    """What decides if the interval does not."""
    mark: str | None = None
    """Mark that the arm or its baseline was emulated; `None` if neither was."""

    @property
    def worse(self) -> tuple[float, float] | None:
        """By how much it is worse, from the interval's better end to its worse one; below zero is better."""
        if self.low is None or self.high is None:
            return None
        return (-self.high, -self.low) if metric_named(self.metric).more_is_better else (self.low, self.high)

    def decided(self) -> LimitCheck:
        """Return it with the outcome that its interval gives."""
        if self.worse is None:
            return self
        least, most = self.worse
        outcome = Outcome.PASS if most <= self.most else Outcome.FAIL if least > self.most else self.outcome
        return replace(self, outcome=outcome)


def check_limit(
    study: Study,
    analysis: Analysis,
    findings: Sequence[Finding],
    limits: Mapping[str, float],
    unfinished: str | None = None,
) -> tuple[LimitCheck, ...]:
    """Check each finding against the limit of its metric, a fraction. `unfinished`: why more blocks are to come.

    Looking repeatedly until an interval fits loses the 95 % coverage, so an unfinished study decides nothing.
    """
    why = _why_undecided(study, unfinished)
    checks = (_check(each, limits[each.metric], invalid=analysis.invalid, why=why) for each in findings)
    return tuple(if_borne(one, analysis) for one in checks)


_LIMITED = frozenset({
    "client-bottleneck", "client-host-bound", "client-latency", "errors", "under-delivery", "unobserved",
    "wire-bound",
})  # fmt: skip
"""Validity rules after which an overhead may be larger than it appears: not only the server was measured."""


def if_borne(one: LimitCheck, analysis: Analysis) -> LimitCheck:
    """Take back a decision that the study's control, or its validity, cannot bear.

    A failure stands if the interval lies beyond the limit by more than the control could hide.
    """
    if analysis.invalid or one.outcome is Outcome.INCONCLUSIVE:
        return one
    if one.outcome is Outcome.PASS:
        arms = {None, one.arm, one.baseline}
        alarm = next((each for each in analysis.alarms if each.rule in _LIMITED and each.arm in arms), None)
        if alarm is not None:
            return replace(one, outcome=Outcome.TOO_NOISY, why=f"rule {alarm.rule}: {alarm.what}")
    if (control := analysis.control) is None:
        return one
    if (hidden := control.could_hide) is None:
        why = "the control has no interval, so the study could hide any bias"
        return replace(one, outcome=Outcome.TOO_NOISY, why=why)
    beyond = one.outcome is Outcome.FAIL and one.worse is not None and one.worse[0] > one.most + hidden
    if hidden <= one.most or beyond:
        return one
    why = f"the control shows no bias, but could hide {hidden_words(hidden)}, more than the limit"
    return replace(one, outcome=Outcome.TOO_NOISY, why=why)


def _why_undecided(study: Study, unfinished: str | None) -> str | None:
    """Why no interval of the study can decide; `None` if they can."""
    if as_published(study):
        return f"the protocol {study.protocol.name} repeats a published method, whose intervals are too narrow"
    return unfinished


def _check(finding: Finding, most: float, *, invalid: bool, why: str | None) -> LimitCheck:
    estimate = finding.estimate
    low, high = widened(estimate, math.log1p(finding.resolution or 0.0))
    one = LimitCheck(
        arm=finding.arm,
        baseline=finding.baseline,
        metric=finding.metric,
        most=most,
        outcome=Outcome.INCONCLUSIVE,
        point=estimate.point,
        low=low,
        high=high,
        n=estimate.n,
        confidence=estimate.confidence,
        resolution=finding.resolution,
        mark=finding.mark,
    )
    if invalid:
        return replace(one, outcome=Outcome.FAIL, why="the control differs from the baseline: the study is invalid")
    if why is not None or one.worse is None:
        return replace(one, why=why or estimate.why)
    return one.decided()


def widened(estimate: Estimate, bucket: float) -> tuple[float | None, float | None]:
    """Return the interval of a ratio less one, each end moved outwards by `bucket`, a log ratio."""
    if estimate.low is None or estimate.high is None or not bucket:
        return estimate.low, estimate.high
    return (1 + estimate.low) * math.exp(-bucket) - 1, (1 + estimate.high) * math.exp(bucket) - 1


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Combine outcomes: one failure fails all, and all must pass. Without any check: inconclusive."""
    order = (Outcome.FAIL, Outcome.TOO_NOISY, Outcome.INCONCLUSIVE, Outcome.PASS)
    return next((each for each in order if each in outcomes), Outcome.INCONCLUSIVE)
