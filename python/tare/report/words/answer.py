"""The answer in one sentence: never a figure without its interval, never "no overhead"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analyze import Analysis
from tare.analyze.answer import ArmAnswer, Kind, arm_answers
from tare.analyze.arms import ArmSummary
from tare.analyze.estimate import Estimate
from tare.analyze.metrics import metric_named
from tare.analyze.published import POOLED_WINDOWS, WELCH
from tare.plural import counted
from tare.protocols.registry import as_published, rule_of
from tare.report.figures import percent
from tare.report.plain import plain
from tare.report.words.answer_lines import listed, phrase
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
    findings = [one for one in analysis.findings if one.metric == metric]
    if not findings or any(each.estimate.low is not None for each in findings):
        return None
    good = {arm.arm for arm in analysis.arms if arm.good}
    estimates = [one.estimate for one in findings if one.arm in good]
    if not estimates:
        return "there is no result: no arm has a good run"
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


def answer(study: Study, analysis: Analysis, block_s: float | None = None) -> str:
    """Answer for every arm against the baseline. `block_s`: machine time of a block, seconds."""
    answers = arm_answers(study, analysis)
    baseline = against(study)
    pointed = [each for each in answers if each.finding.estimate.point is not None]
    if not pointed:
        return _none(analysis, baseline)
    bounded = [each for each in pointed if each.kind is not Kind.UNKNOWN]
    if not bounded:
        metric = pointed[0].finding.metric
        alike = [each for each in pointed if each.finding.metric == metric]
        named = [f"{_name(each)} {percent(each.finding.estimate.point)}" for each in _strongest(alike)]
        points = listed([*named[:_NAMED], f"{len(named) - _NAMED} more"] if len(named) > _NAMED + 1 else named)
        few = "There are too few blocks for an interval."
        title = metric_named(metric).title
        return f"{few} Points without one, {title} against {baseline}: {points}."
    parts = [_group(kind, found, block_s) for kind in _ORDER if (found := [e for e in bounded if e.kind is kind])]
    if len(pointed) > len(bounded):
        without = [_name(each) for each in pointed if each.kind is Kind.UNKNOWN]
        parts.append(f"{listed(without)} had too few blocks for an interval")
    return f"{answer_head(study, analysis)} {'; '.join(parts)}."


def answer_head(study: Study, analysis: Analysis) -> str:
    """Return what precedes the arms: a caution if there is one, the baseline, what the intervals are made of."""
    estimates = [each.finding.estimate for each in arm_answers(study, analysis) if each.kind is not Kind.UNKNOWN]
    most = max(estimates, key=lambda estimate: estimate.n, default=None)
    of = "" if most is None else f" ({100 * most.confidence:g} % intervals, {units(most)})"
    head = f"{_caution(study, analysis)}against {against(study)}{of}:"
    return head[0].upper() + head[1:]


_ORDER = (Kind.COSTS, Kind.GAINS, Kind.BELOW, Kind.ALIKE, Kind.UNDECIDED)


def _group(kind: Kind, answers: Sequence[ArmAnswer], block_s: float | None) -> str:
    """Describe arms of one kind: the strongest first where they differ, else in the study's order."""
    ordered = _strongest(answers) if kind in {Kind.COSTS, Kind.GAINS} else list(answers)
    words = [f"{_name(each)}{_SEPARATOR[kind]} {phrase(each, block_s)}" for each in ordered[:_NAMED]]
    hidden = len(ordered) - len(words)
    return listed([*words, f"{hidden} more {_KIND_OF_REST[kind]}"] if hidden else words)


_SEPARATOR: Mapping[Kind, str] = {
    kind: "" if kind in {Kind.COSTS, Kind.GAINS, Kind.BELOW} else "," for kind in Kind
}
_KIND_OF_REST: Mapping[Kind, str] = {
    Kind.COSTS: "cost less",
    Kind.GAINS: "gain less",
    Kind.BELOW: "cost as little",
    Kind.ALIKE: "without a measurable difference",
    Kind.UNDECIDED: "undecided",
}


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


def _name(each: ArmAnswer) -> str:
    return plain(each.finding.arm, 60)


def _strongest(answers: Sequence[ArmAnswer]) -> list[ArmAnswer]:
    return sorted(answers, key=lambda each: -abs(each.finding.estimate.point or 0.0))
