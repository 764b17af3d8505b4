"""The answer of a study: what each arm costs, and how far the study can be trusted. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtrit

from tare.analyze.analysis import Analysis
from tare.analyze.estimate import Finding
from tare.analyze.metrics import PRIMARY, metric_named
from tare.plural import counted
from tare.protocols.registry import as_published
from tare.study.model import Study

AT_A_RATE = "latency_p95"
SMALL = 0.05
"""An effect within this fraction is called small where the study declares no margin."""
MOST_BLOCKS = 1000
"""Where more blocks than this would be needed, other remedies are better."""


class Kind(StrEnum):
    """What an interval says about an arm's cost."""

    COSTS = "costs"
    """The whole interval is a loss."""
    GAINS = "gains"
    """The whole interval is a gain."""
    BELOW = "costs less"
    """There may be no loss, and it is small if there is one; a gain may be larger."""
    ALIKE = "no measurable difference"
    """The interval includes zero and is narrow: neither a loss nor a gain beyond a small one."""
    UNDECIDED = "undecided"
    """The interval includes zero and is wide."""
    UNKNOWN = "unknown"
    """There is no interval."""


@dataclass(frozen=True)
class ArmAnswer:
    """One arm against its baseline. `low`, `high`: interval of the cost, a fraction, positive if worse.

    `small`: bound of what is called small, the study's margin or `SMALL`. `more_blocks`: blocks that would decide
    an undecided arm if effect and spread stay as they are; `None` where nobody knows, or more than `MOST_BLOCKS`.
    """

    finding: Finding
    kind: Kind
    low: float | None
    high: float | None
    small: float
    more_blocks: int | None = None

    @property
    def within(self) -> float | None:
        """Largest effect in either direction that the interval allows, a fraction."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))

    @property
    def decided(self) -> bool:
        """Whether the interval answers the question."""
        return self.kind not in {Kind.UNDECIDED, Kind.UNKNOWN}


def primary_of(study: Study, analysis: Analysis, arm: str) -> str:
    """Name of the metric that answers the study's question for an arm.

    Imported results may name another than throughput. Where a rate is given, all arms that keep it have the same
    throughput, so latency answers.
    """
    if study.imported:
        return study.imported.primary
    return AT_A_RATE if arm in analysis.at_a_rate else PRIMARY


def arm_answers(study: Study, analysis: Analysis) -> tuple[ArmAnswer, ...]:
    """Answer for every arm except baselines and control in the study's primary metric, in the study's order."""
    return tuple(
        arm_answer(finding, study.margins.get(finding.metric, SMALL))
        for finding in analysis.findings
        if finding.metric == primary_of(study, analysis, finding.arm) and not finding.control
    )


def arm_answer(finding: Finding, small: float) -> ArmAnswer:
    """Answer by a finding's interval. `small`: see `ArmAnswer`."""
    low, high = finding.estimate.low, finding.estimate.high
    if low is None or high is None:
        return ArmAnswer(finding, Kind.UNKNOWN, None, None, small)
    if metric_named(finding.metric).more_is_better:
        low, high = -high, -low
    kind = _kind(low, high, small, excludes_zero=finding.excludes_zero)
    more = _blocks_to_decide(finding, small) if kind is Kind.UNDECIDED else None
    return ArmAnswer(finding, kind, low, high, small, more)


def _kind(low: float, high: float, small: float, *, excludes_zero: bool) -> Kind:
    if excludes_zero:
        return Kind.COSTS if low > 0 else Kind.GAINS
    if max(abs(low), abs(high)) <= small:
        return Kind.ALIKE
    return Kind.BELOW if high <= small else Kind.UNDECIDED


def _blocks_to_decide(finding: Finding, small: float) -> int | None:
    """Further blocks after which a t interval of the same centre and spread excludes zero, or is small."""
    logs = np.log1p([effect for _, effect in finding.blocks])
    made = len(logs)
    if made < 2:  # no spread
        return None
    mean, spread = abs(float(logs.mean())), float(logs.std(ddof=1))
    blocks = np.arange(made + 1, made + MOST_BLOCKS + 1)
    half = stdtrit(blocks - 1, 0.975) * spread / np.sqrt(blocks)
    enough = np.flatnonzero((half < mean) | (mean + half <= math.log1p(small)))
    return int(enough[0]) + 1 if len(enough) else None


class Trust(StrEnum):
    """How far the figures of a study can be trusted."""

    SOUND = "sound"
    CARE = "read with care"
    NOISY = "too noisy to decide"
    INVALID = "invalid"
    """The control differs from the baseline."""


@dataclass(frozen=True)
class Trusted:
    """A level with its reasons: clauses, the gravest first.

    `could_hide`: largest bias that the control would not have shown, a fraction; `None` without its interval.
    `widest`: the undecided arm with the widest interval, for `Trust.NOISY`.
    """

    level: Trust
    reasons: tuple[str, ...] = ()
    could_hide: float | None = None
    widest: ArmAnswer | None = None


def trust(study: Study, analysis: Analysis, answers: Sequence[ArmAnswer]) -> Trusted | None:
    """Judge a study; `None` while no arm has an estimate."""
    if not any(each.finding.estimate.point is not None for each in answers):
        return None
    hidden = None if analysis.control is None else analysis.control.could_hide
    if analysis.invalid:
        return Trusted(Trust.INVALID, (), hidden)
    bias = why_hidden(study, hidden, has_control=analysis.control is not None)
    return trust_by(answers, hidden, (*_reasons(study, analysis), *bias))


def trust_by(answers: Sequence[ArmAnswer], hidden: float | None, reasons: tuple[str, ...]) -> Trusted:
    """Judge answers of a study that is not invalid. `hidden`: see `Trusted.could_hide`."""
    if not any(each.decided and _stands_out(each, hidden) for each in answers):
        wide = [each for each in answers if each.within is not None]
        widest = max(wide, key=lambda each: each.within or 0.0) if wide else None
        return Trusted(Trust.NOISY, reasons, hidden, widest)
    return Trusted(Trust.CARE if reasons else Trust.SOUND, reasons, hidden)


def _stands_out(answer: ArmAnswer, hidden: float | None) -> bool:
    """Whether an effect is larger than the bias that the control could hide; a small one has no need to be."""
    point = answer.finding.estimate.point
    return answer.kind is Kind.ALIKE or hidden is None or point is None or abs(point) > hidden


def why_hidden(study: Study, hidden: float | None, *, has_control: bool) -> tuple[str, ...]:
    """Why a bias between the arms may not show, in a clause; empty if it would."""
    if not has_control:
        return ("there is no control",)
    if hidden is None:
        return ("the control has no interval",)
    if hidden > study.margins.get(PRIMARY, SMALL):
        return (f"a bias of up to {hidden_words(hidden)} would not have shown",)
    return ()


def hidden_words(hidden: float) -> str:
    """Format the bias that a control could hide, rounded up: 0.0851 → `8.6 %`, 0.123 → `13 %`."""
    digits = 0 if hidden >= 0.1 else 1
    return f"{math.ceil(round(hidden * 10 ** (2 + digits), 6)) / 10**digits:.{digits}f} %"


def _reasons(study: Study, analysis: Analysis) -> list[str]:
    """Why a study has to be read with care, its control aside, the gravest first."""
    reasons = []
    if as_published(study):
        reasons.append(f"the protocol {study.protocol.name} gives intervals that are too narrow")
    if analysis.emulated:
        reasons.append("arms ran on an emulated CPU")
    if any(arm.missed is not None and arm.missed.missed for arm in analysis.arms):
        reasons.append("arms missed arrivals")
    if study.imported is not None:
        reasons.append("others measured it")
    rules = list(dict.fromkeys(alarm.rule for alarm in analysis.alarms if alarm.rule != "imported"))
    if rules:
        reasons.append(f"{counted(len(rules), 'validity rule')} broken ({', '.join(rules)})")
    return reasons
