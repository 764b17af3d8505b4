"""Judging the findings of each arm: the primary metric by itself, the secondary ones as one family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tare.analyze.estimate import Finding, Judgement
from tare.analyze.metrics import PRIMARY
from tare.analyze.verdict import PValues, adjusted, p_values, verdict
from tare.protocols.registry import as_published
from tare.protocols.stopping import Rule
from tare.study.model import Study


def judged(study: Study, findings: Sequence[Finding], *, invalid: bool) -> tuple[Finding, ...]:
    """The findings with their judgements. `invalid`: the control differs, so that no verdict is given.

    Each arm is a question of its own, so the secondary metrics of one arm are one family and arms are not adjusted
    for each other: Parker & Weir, "Non-adjustment for multiple testing in multi-arm trials of distinct
    treatments", Clin. Trials 17 (2020). An arm more or less then changes no verdict on the others.
    """
    if as_published(study):
        why = f"the protocol {study.protocol.name} is a published baseline, whose intervals do not hold"
        return tuple(replace(one, judgement=_withheld(study, one, why)) for one in findings)
    tests = _tests(study, findings)
    alpha = Rule.of(study.protocol).alpha
    return tuple(replace(one, judgement=_judgement(study, one, tests, alpha, invalid=invalid)) for one in findings)


Tests = Mapping[tuple[str, str], tuple[PValues | None, int]]
"""(arm, metric) → adjusted p values, and the number of metrics that they were adjusted over."""


def _tests(study: Study, findings: Sequence[Finding]) -> Tests:
    raw = {(one.arm, one.metric): _raw(study, one) for one in findings}
    tests: dict[tuple[str, str], tuple[PValues | None, int]] = {}
    for arm in dict.fromkeys(one.arm for one in findings):
        own = {metric: found for (of, metric), found in raw.items() if of == arm}
        family = adjusted({name: found for name, found in own.items() if name != PRIMARY and found is not None})
        for metric, found in own.items():
            tests[arm, metric] = (found, 1) if metric == PRIMARY else (family.get(metric), max(1, len(family)))
    return tests


def _raw(study: Study, finding: Finding) -> PValues | None:
    ratios = [1 + effect for _, effect in finding.blocks]
    return p_values(ratios, study.margins.get(finding.metric), finding.resolution)


def _judgement(study: Study, finding: Finding, tests: Tests, alpha: float, *, invalid: bool) -> Judgement:
    found, family = tests[finding.arm, finding.metric]
    margin, resolved = study.margins.get(finding.metric), not finding.below_resolution
    judgement = Judgement(
        margin=margin,
        p_zero=None if found is None else found.zero,
        p_outside=None if found is None else found.outside,
        family=family,
        differs=found is not None and found.zero < alpha and resolved,
    )
    if margin is None:
        return judgement
    if invalid:
        return replace(judgement, withheld="the control differs from the baseline, so the study is invalid")
    return replace(judgement, verdict=verdict(found, alpha, resolved=resolved))


def _withheld(study: Study, finding: Finding, why: str) -> Judgement:
    """What a published baseline has in place of a judgement: nothing is claimed by intervals that do not hold."""
    margin = study.margins.get(finding.metric)
    return Judgement(margin=margin, withheld=None if margin is None else why)
