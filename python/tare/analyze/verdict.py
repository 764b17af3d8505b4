"""Verdicts on the findings of each arm against declared margins: equivalent, different or inconclusive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from tare.analyze.estimate import Finding, Judgement, Verdict
from tare.analyze.metrics import PRIMARY
from tare.analyze.statistics.intervals import FEWEST_BLOCKS
from tare.protocols import sign_flip
from tare.protocols.anytime import ALPHA, p_value, spreads
from tare.protocols.registry import as_published, rule_of
from tare.protocols.stopping import Rule
from tare.study.model import Study


@dataclass(frozen=True)
class PValues:
    """P values. `outside`: of an effect outside the margin, `None` without a margin. `zero`: of no effect."""

    outside: float | None
    zero: float


def p_values(
    ratios: Sequence[float], margin: float | None, bucket: float | None = None, *, anytime: bool = False
) -> PValues | None:
    """Two one-sided t tests and a two-sided t test on the log ratios; `None` if no test is possible.

    The margin is symmetric on the log scale: from 1/(1 + margin) to 1 + margin. The p value of equivalence is the
    larger of the two one-sided ones. Schuirmann, "A comparison of the two one-sided tests procedure …", J.
    Pharmacokinet. Biopharm. 15 (1987). `bucket`: relative width of the histogram buckets behind the values. Each
    ratio may be wrong by that much, and all in the same direction, so the margin shrinks by it; a margin of one
    bucket or less can never be shown to hold. `anytime`: p values that hold at every look (`protocols.anytime`);
    the p value of equivalence is then the larger of those at the two bounds.
    """
    if margin is not None and margin <= 0:
        raise ValueError(f"a margin is above 0, not {margin:g}")
    logs = np.log(np.asarray(ratios, dtype=float))
    if len(logs) < FEWEST_BLOCKS or not spreads(logs.tolist()):
        return None
    mean, error, freedom = float(logs.mean()), float(logs.std(ddof=1)) / len(logs) ** 0.5, len(logs) - 1
    if anytime:
        return _anytime(mean / error, error, len(logs), margin, bucket)
    return _by_t(mean, error, freedom, margin, bucket)


def _by_t(mean: float, error: float, freedom: int, margin: float | None, bucket: float | None) -> PValues:
    zero = 2 * float(stdtr(freedom, -abs(mean) / error))
    if margin is None:
        return PValues(outside=None, zero=zero)
    bound = float(np.log1p(margin) - np.log1p(bucket or 0.0))
    outside = float(stdtr(freedom, (abs(mean) - bound) / error)) if bound > 0 else 1.0
    return PValues(outside=outside, zero=zero)


def _anytime(t: float, error: float, n: int, margin: float | None, bucket: float | None) -> PValues:
    zero = p_value(t, n)
    if margin is None:
        return PValues(outside=None, zero=zero)
    bound = float(np.log1p(margin) - np.log1p(bucket or 0.0)) / error
    return PValues(outside=p_value(bound - abs(t), n) if abs(t) < bound else 1.0, zero=zero)


def sign_flip_p_values(
    ratios: Mapping[int, float], margin: float | None, bucket: float | None = None, *, blocks_each: int = 1
) -> PValues | None:
    """Like `p_values`, by `tare.protocols.sign_flip`. `ratios`: by block. Each bound is tested from its side."""
    units = sign_flip.mirrored({block: math.log(ratio) for block, ratio in ratios.items()}, blocks_each)
    if len(units) < FEWEST_BLOCKS or not spreads(units):
        return None
    zero = sign_flip.p_value(units, 0.0)
    if margin is None:
        return PValues(outside=None, zero=zero)
    bound = math.log1p(margin) - math.log1p(bucket or 0.0)
    if bound <= 0:
        return PValues(outside=1.0, zero=zero)
    below, above = (sign_flip.p_value_beyond(units, side * bound, side) for side in (-1, 1))
    return PValues(outside=max(below, above), zero=zero)


def verdict(tested: PValues | None, alpha: float = 0.05, *, resolved: bool = True) -> Verdict:
    """Verdict on p values. Equivalence has priority: a tiny non-zero effect still lies within the margin.

    `resolved`: whether the effect is larger than the resolution of the generator's histogram; a smaller one is not
    called a difference.
    """
    if tested is None:
        return Verdict.INCONCLUSIVE
    if tested.outside is not None and tested.outside < alpha:
        return Verdict.EQUIVALENT
    return Verdict.DIFFERENT if tested.zero < alpha and resolved else Verdict.INCONCLUSIVE


def holm(raw: Mapping[str, float]) -> dict[str, float]:
    """Adjust a family of p values so that the probability of any false rejection is at most alpha.

    Of m values in ascending order, the i-th is multiplied by m - i + 1, and is never below the one before nor above
    1. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979). Not by
    statsmodels, which collects garbage at every call and so took twenty times as long as the rest of an analysis.
    """
    adjusted, least = {}, 0.0
    for n, (name, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(raw) - n) * p))
        adjusted[name] = least
    return {name: adjusted[name] for name in raw}


def adjusted(family: Mapping[str, PValues]) -> dict[str, PValues]:
    """Adjust the tests of secondary metrics; tests against margins and tests against zero are separate families."""
    outside = holm({name: one.outside for name, one in family.items() if one.outside is not None})
    zero = holm({name: one.zero for name, one in family.items()})
    return {name: PValues(outside=outside.get(name), zero=zero[name]) for name in family}


def judged(study: Study, findings: Sequence[Finding], *, invalid: bool) -> tuple[Finding, ...]:
    """Add judgements to findings. `invalid`: the control differs, so there are no verdicts.

    Each arm is a separate question, so the secondary metrics of one arm are one family, and arms are not adjusted
    for each other: Parker & Weir, "Non-adjustment for multiple testing in multi-arm trials of distinct
    treatments", Clin. Trials 17 (2020). Adding or removing an arm then changes no verdict on the others.
    """
    if as_published(study):
        why = f"the protocol {study.protocol.name} repeats a published method, whose intervals are too narrow"
        return tuple(replace(one, judgement=_withheld(study, one, why)) for one in findings)
    tests = _tests(study, findings)
    rule = Rule.of(study.protocol)
    alpha = rule.alpha if rule.anytime is None else ALPHA
    return tuple(replace(one, judgement=_judgement(study, one, tests, alpha, invalid=invalid)) for one in findings)


Tests = Mapping[tuple[str, str], tuple[PValues | None, int]]
"""(arm, metric) → adjusted p values, and the number of metrics in their family."""


def _tests(study: Study, findings: Sequence[Finding]) -> Tests:
    raw = {(one.arm, one.metric): _raw(study, one) for one in findings}
    tests: dict[tuple[str, str], tuple[PValues | None, int]] = {}
    for arm in dict.fromkeys(one.arm for one in findings):
        own = {metric: untested for (of, metric), untested in raw.items() if of == arm}
        family = adjusted(
            {name: untested for name, untested in own.items() if name != PRIMARY and untested is not None}
        )
        for metric, untested in own.items():
            tests[arm, metric] = (untested, 1) if metric == PRIMARY else (family.get(metric), max(1, len(family)))
    return tests


def _raw(study: Study, finding: Finding) -> PValues | None:
    over = finding.over_sites or finding.over_hosts
    if over is not None:
        margin = study.margins.get(finding.metric)
        return (
            None if over.error is None else _by_t(over.mean, over.error, over.freedom, margin, finding.resolution)
        )
    ratios = {block: 1 + effect for block, effect in finding.blocks}
    margin, rule = study.margins.get(finding.metric), rule_of(study)
    if rule.anytime == "sign-flip":
        return sign_flip_p_values(ratios, margin, finding.resolution, blocks_each=rule.blocks_each)
    return p_values(list(ratios.values()), margin, finding.resolution, anytime=rule.anytime == "t-mixture")


def _judgement(study: Study, finding: Finding, tests: Tests, alpha: float, *, invalid: bool) -> Judgement:
    tested, family = tests[finding.arm, finding.metric]
    margin, resolved = study.margins.get(finding.metric), not finding.below_resolution
    judgement = Judgement(
        margin=margin,
        p_zero=None if tested is None else tested.zero,
        p_outside=None if tested is None else tested.outside,
        family=family,
        differs=tested is not None and tested.zero < alpha and resolved,
    )
    if margin is None:
        return judgement
    if invalid:
        return replace(judgement, withheld="the control differs from the baseline, so the study is invalid")
    return replace(judgement, verdict=verdict(tested, alpha, resolved=resolved))


def _withheld(study: Study, finding: Finding, why: str) -> Judgement:
    """Judgement without a verdict for protocols that repeat a publication, whose intervals do not hold."""
    margin = study.margins.get(finding.metric)
    return Judgement(margin=margin, withheld=None if margin is None else why)
