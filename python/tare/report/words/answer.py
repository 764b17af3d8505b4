"""The answer in one sentence: never a figure without its interval, never "no overhead"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analyze import Analysis, Finding
from tare.analyze.arms import ArmSummary
from tare.analyze.estimate import Estimate, Verdict
from tare.analyze.metrics import PRIMARY, metric_named
from tare.analyze.published import POOLED_WINDOWS, WELCH
from tare.plural import counted
from tare.protocols.registry import as_published, rule_of
from tare.report.figures import decimals_of, percent
from tare.report.plain import plain
from tare.study.model import Study
from tare.study.protocol_spec import Anytime

_UNITS = {WELCH: "run", POOLED_WINDOWS: "window"}
_PUBLISHED: Mapping[str, str] = {
    "fixed": "Column n counts unpaired runs per side; intervals are Welch's, on the difference of means. They "
    "miss the true value more often than one time in twenty",
    "buckets": "Column n counts windows per side, pooled over all runs; intervals are z = 1.96 standard errors "
    "of the difference of their means. They miss the true value far more often than one time in twenty",
}
"""For the published baselines; all other protocols pair runs by block."""


def units(estimate: Estimate) -> str:
    """Count the units of an estimate: `8 blocks`, `5 runs a side`, `50 windows a side`."""
    unit = _UNITS.get(estimate.method)
    return counted(estimate.n, "block") if unit is None else f"{counted(estimate.n, unit)} a side"


def runs_of_baseline(analysis: Analysis, baseline: ArmSummary) -> str:
    """Return the baseline's good runs for a column that counts units of estimates; empty if these are windows."""
    counts_windows = any(finding.estimate.method == POOLED_WINDOWS for finding in analysis.findings)
    return "" if counts_windows else str(baseline.good)


def is_paired(estimate: Estimate) -> bool:
    """Whether only blocks with a good run of both sides count, as in all but published methods."""
    return estimate.method not in _UNITS


def why_no_interval(analysis: Analysis, metric: str) -> str | None:
    """Return why no arm has an interval in a metric, as a clause; `None` if one has, or there is no arm."""
    estimates = [one.estimate for one in analysis.findings if one.metric == metric]
    if not estimates or any(each.low is not None for each in estimates):
        return None
    return "there is no interval: " + ", ".join(
        dict.fromkeys(each.why or "nothing was measured" for each in estimates)
    )


def unpaired(study: Study) -> str | None:
    """Return two sentences without the last full stop; `None` if runs are paired by block."""
    return _PUBLISHED.get(study.protocol.name) if as_published(study) else None


_KINDS: Mapping[Anytime | None, str] = {
    None: "t intervals",
    "t-mixture": "intervals that hold at every look (t-mixture)",
    "sign-flip": "intervals that hold at every look by the random order alone (sign flips of pairs of blocks)",
}


def interval_kind(study: Study) -> str:
    """Return the kind of interval that a study with paired runs shows, in the plural."""
    return _KINDS[rule_of(study).anytime]


_LONGEST = 60


def against(study: Study) -> str:
    """Name the baseline: `bare`, or if each arm has its own, `bare, all else alike`."""
    if not study.baseline_levels:
        return plain(study.baseline, _LONGEST)
    return f"{plain(', '.join(study.baseline_levels.values()), _LONGEST)}, all else alike"


_NAMED = 3
"""Most arms that a readable sentence can name."""


def answer(study: Study, analysis: Analysis) -> str:
    """Answer for the primary metric of every arm against the baseline; imported results may have another one."""
    primary = study.imported.primary if study.imported else PRIMARY
    findings = [finding for finding in analysis.findings if finding.metric == primary and not finding.control]
    baseline = against(study)
    pointed = [finding for finding in findings if finding.estimate.point is not None]
    if not pointed:
        return _none(analysis, baseline)
    bounded = [finding for finding in pointed if finding.estimate.low is not None]
    if not bounded:
        named = [f"{_name(one)} {percent(one.estimate.point)}" for one in _strongest(pointed)]
        points = _listed([*named[:_NAMED], f"{len(named) - _NAMED} more"] if len(named) > _NAMED + 1 else named)
        few = "There are too few blocks for an interval."
        return f"{few} Points without one, {_title(pointed[0])} against {baseline}: {points}."
    within = [finding for finding in bounded if finding.judgement.verdict is Verdict.EQUIVALENT]
    rest = [finding for finding in bounded if finding not in within]
    apart = _strongest([finding for finding in rest if finding.excludes_zero])
    alike = [finding for finding in rest if not finding.excludes_zero]
    parts = [_apart(apart, baseline)] if apart else []
    parts += [_within(within, baseline)] if within else []
    parts += [_alike(alike, baseline)] if alike else []
    if len(pointed) > len(bounded):
        without = [_name(finding) for finding in pointed if finding.estimate.low is None]
        parts.append(f"{_listed(without)} had too few blocks for an interval")
    sentence = _caution(study, analysis) + "; ".join(parts)
    return sentence[0].upper() + sentence[1:] + "."


def _none(analysis: Analysis, baseline: str) -> str:
    """Say why there is no answer, with the reason of the last failed run."""
    if not analysis.attempted:
        return "There is no answer yet: no run has been made."
    nothing = f"There is no answer: no block has a good run of both an arm and {baseline}."
    if not analysis.failures:
        return nothing
    last = analysis.failures[-1]
    where = f" in {last.phase}" if last.phase else ""
    reason = plain(last.reason, 200).rstrip(".")
    return f"{nothing} {counted(len(analysis.failures), 'attempt')} failed, the last{where}: {reason}."


def _caution(study: Study, analysis: Analysis) -> str:
    """Return the caution that precedes the figures, since the answer is also read alone."""
    name = study.protocol.name
    if analysis.invalid:
        return "do not trust these figures, since the control differs from the baseline: "
    if as_published(study):
        return f"by the published method `{name}`, whose intervals are too narrow: "
    return ""


def _apart(findings: Sequence[Finding], baseline: str) -> str:
    """Describe arms whose interval excludes zero, the strongest effect first and in full."""
    first, *others = findings
    confidence = f"{100 * first.estimate.confidence:g} % interval"
    words = [f"{_name(first)} has {_change(first)} ({confidence} {_span(first)}, {units(first.estimate)})"]
    words += [f"{_name(one)} {_change(one, short=True)} ({_span(one)})" for one in others[: _NAMED - 1]]
    hidden = len(findings) - _NAMED
    if hidden > 0:
        words.append(f"{hidden} more {'arm differs' if hidden == 1 else 'arms differ'} as well")
    return f"against {baseline}, {_listed(words)}"


def _within(findings: Sequence[Finding], baseline: str) -> str:
    """Describe arms whose effect was shown to lie within the margin, which does not mean that there is none."""
    margin = percent(findings[0].judgement.margin, signed=False)
    names = _named(findings)
    return f"{_listed(names)} {'is' if len(findings) == 1 else 'are'} equivalent to {baseline} within ±{margin}"


def _named(findings: Sequence[Finding]) -> list[str]:
    names = [f"{_name(one)} ({_span(one)})" for one in findings[: _NAMED + 1]]
    hidden = len(findings) - len(names)
    return [*names, f"{hidden} more"] if hidden > 0 else names


def _alike(findings: Sequence[Finding], baseline: str) -> str:
    """Describe arms whose interval includes zero, by their intervals."""
    names = _named(findings)
    zero = "interval includes" if len(findings) == 1 else "intervals include"
    margin = findings[0].judgement.margin if findings[0].judgement.verdict else None
    neither = "" if margin is None else f" nor equivalence within ±{percent(margin, signed=False)}"
    none = "no difference from" if margin is None else "neither a difference from"
    alone = "," if "," in baseline else ""  # "bare, all else alike" ends before the verb
    return f"{none} {baseline}{alone}{neither} is shown for {_listed(names)}, whose {zero} zero"


def _change(finding: Finding, *, short: bool = False) -> str:
    effect = finding.estimate.point
    if effect is None:
        raise ValueError("an arm without a point has no change to speak of")
    size = percent(abs(effect), decimals_of(finding.estimate), signed=False)
    way = "less" if effect < 0 else "more"
    return f"{size} {way}" if short else f"{size} {way} {_title(finding)}"


def _span(finding: Finding) -> str:
    """Format an interval: `-58.5 to -57.4 %`."""
    digits = decimals_of(finding.estimate)
    low, high = percent(finding.estimate.low, digits), percent(finding.estimate.high, digits)
    return f"{low.removesuffix(' %')} to {high}"


def _title(finding: Finding) -> str:
    return metric_named(finding.metric).title


def _name(finding: Finding) -> str:
    return plain(finding.arm, 60)


def _strongest(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: -abs(one.estimate.point or 0.0))


def _listed(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
