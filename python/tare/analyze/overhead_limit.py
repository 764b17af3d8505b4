"""`tare check`: compare each overhead with a limit. Intervals decide, never points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tare.analyze.analysis import Analysis
from tare.analyze.estimate import Finding
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
    """One arm's overhead in one metric against the limit.

    `point`, `low`, `high`: overhead as a fraction of the baseline, positive if worse: the loss of throughput, or
    the increase of latency, CPU time or block I/O. `low` and `high` are widened by the `resolution` of the
    generator's histogram, if the metric comes from one. `why`: the reason, if the interval does not decide.
    """

    arm: str
    baseline: str
    metric: str
    outcome: Outcome
    point: float | None
    low: float | None
    high: float | None
    n: int
    confidence: float
    resolution: float | None
    why: str | None = None
    mark: str | None = None
    """Mark that the arm or its baseline was emulated; `None` if neither was."""


def check_limit(
    study: Study, analysis: Analysis, findings: Sequence[Finding], most: float, unfinished: str | None = None
) -> tuple[LimitCheck, ...]:
    """Check each finding against the limit `most`, a fraction. `unfinished`: why more blocks are to come, if so.

    Looking repeatedly until an interval fits loses the 95 % coverage, so an unfinished study decides nothing.
    """
    why = _why_undecided(study, unfinished)
    checks = (_check(finding, most, invalid=analysis.invalid, why=why) for finding in findings)
    return tuple(_if_borne(one, analysis, most) for one in checks)


_LIMITED = frozenset({
    "client-bottleneck", "client-host-bound", "client-latency", "errors", "under-delivery", "unwitnessed",
    "wire-bound",
})  # fmt: skip
"""Validity rules after which an overhead may be larger than it appears: not only the server was measured."""


def _if_borne(one: LimitCheck, analysis: Analysis, most: float) -> LimitCheck:
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
    beyond = one.outcome is Outcome.FAIL and one.low is not None and one.low > most + hidden
    if hidden <= most or beyond:
        return one
    why = f"the control shows no bias, but could hide {100 * hidden:.0f} %, more than the limit"
    return replace(one, outcome=Outcome.TOO_NOISY, why=why)


def _why_undecided(study: Study, unfinished: str | None) -> str | None:
    """Why no interval of the study can decide; `None` if they can."""
    if as_published(study):
        return f"the protocol {study.protocol.name} repeats a published method, whose intervals are too narrow"
    return unfinished


def _check(finding: Finding, most: float, *, invalid: bool, why: str | None) -> LimitCheck:
    low, high = _overhead_interval(finding)
    one = LimitCheck(
        arm=finding.arm,
        baseline=finding.baseline,
        metric=finding.metric,
        outcome=Outcome.INCONCLUSIVE,
        point=_as_overhead(finding, finding.estimate.point),
        low=low,
        high=high,
        n=finding.estimate.n,
        confidence=finding.estimate.confidence,
        resolution=finding.resolution,
        mark=finding.mark,
    )
    return _decided(one, finding, most, invalid=invalid, why=why)


def _decided(one: LimitCheck, finding: Finding, most: float, *, invalid: bool, why: str | None) -> LimitCheck:
    if invalid:
        return replace(one, outcome=Outcome.FAIL, why="the control differs from the baseline: the study is invalid")
    if why is not None or one.low is None or one.high is None:
        return replace(one, why=why or finding.estimate.why)
    if one.high <= most:
        return replace(one, outcome=Outcome.PASS)
    return replace(one, outcome=Outcome.FAIL) if one.low > most else one


def _as_overhead(finding: Finding, effect: float | None) -> float | None:
    """Convert an effect to an overhead, which is positive if worse."""
    if effect is None:
        return None
    return -effect if metric_named(finding.metric).more_is_better else effect


def _overhead_interval(finding: Finding) -> tuple[float | None, float | None]:
    """Interval of the overhead, widened at each end by the width of a histogram bucket."""
    low, high = finding.estimate.low, finding.estimate.high
    if low is None or high is None:
        return None, None
    if finding.resolution is not None:
        low, high = (1 + low) / (1 + finding.resolution) - 1, (1 + high) * (1 + finding.resolution) - 1
    return (-high, -low) if metric_named(finding.metric).more_is_better else (low, high)


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Combine outcomes: one failure fails all, and all must pass. Without any check: inconclusive."""
    order = (Outcome.FAIL, Outcome.TOO_NOISY, Outcome.INCONCLUSIVE, Outcome.PASS)
    return next((each for each in order if each in outcomes), Outcome.INCONCLUSIVE)
