"""Verdicts in words: each arm, metric by metric, against the margin that the study declared."""

from __future__ import annotations

from collections.abc import Sequence

from tare.analyze import Analysis, Finding
from tare.analyze.estimate import Verdict
from tare.analyze.metrics import PRIMARY
from tare.analyze.statistics.intervals import ANYTIME, SIGN_FLIP
from tare.report.figures import NONE, interval, percent
from tare.report.plain import plain

_ORDER = (Verdict.DIFFERENT, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)


def verdicts(analysis: Analysis) -> tuple[str, ...]:
    """Return a line for each metric with a margin: its name, the margin, and the arms of each verdict."""
    lines = []
    for metric in analysis.metrics:
        findings = [
            one for one in analysis.findings if one.metric == metric.name and one.judgement.margin is not None
        ]
        if findings:
            margin = percent(findings[0].judgement.margin, signed=False)
            lines.append(f"{metric.title}, \N{PLUS-MINUS SIGN}{margin}: {_answer(findings)}.")
    return tuple(lines)


def method(analysis: Analysis) -> str | None:
    """Explain how verdicts are reached; `None` without verdicts."""
    judged = [one for one in analysis.findings if one.judgement.verdict is not None]
    if not judged:
        return None
    anytime = any(one.estimate.method in {ANYTIME, SIGN_FLIP} for one in judged)
    by = "an interval that holds at every look puts" if anytime else "two one-sided t tests put"
    text = f"Equivalent: {by} the effect within the margin; different: the effect is not zero"
    sizes = {one.judgement.family for one in judged if one.metric != PRIMARY and one.judgement.family > 1}
    if not sizes:
        return f"{text}."
    return f"{text}. Verdicts on secondary metrics are adjusted over the {max(sizes)} metrics of an arm (Holm)."


def short(finding: Finding) -> str | None:
    """Return the verdict in a word, for a table's cell."""
    verdict = finding.judgement.verdict
    return None if verdict is None else verdict.value


def _answer(findings: Sequence[Finding]) -> str:
    withheld = findings[0].judgement.withheld
    if withheld is not None:
        return f"no verdict, since {withheld}"
    parts = []
    for verdict in _ORDER:
        named = [f"{plain(one.arm, 60)} {_span(one)}" for one in findings if short(one) == verdict]
        if named:
            parts.append(f"{verdict.value}: {', '.join(named)}")
    return "; ".join(parts)


def _span(finding: Finding) -> str:
    bounds = interval(finding.estimate)
    return f"({finding.estimate.why})" if bounds == NONE else f"{bounds} %"
