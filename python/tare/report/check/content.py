"""The content of a check, independent of its format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tare.analyze import Analysis, Estimate, Finding, analyze
from tare.analyze.metrics import metric_named
from tare.analyze.overhead_limit import LimitCheck, Outcome, check_limit, worst
from tare.errors import StudyError
from tare.plural import counted
from tare.record.emulated import emulated_arms, shown_names, with_marks
from tare.record.run_record import RunRecord
from tare.report.figures import decimals_of, interval, percent
from tare.report.plain import plain
from tare.report.words.headlines import Headline, headlines
from tare.report.words.notes import warnings
from tare.study.model import Study
from tare.study.suggest import did_you_mean

READING = (
    "Overheads are relative to the baseline, as in a report: -5 % throughput is 5 % less. An arm passes if its "
    "whole 95 % interval is within the limit, and fails if all of it is beyond."
)


@dataclass(frozen=True)
class Check:
    """A check. `limits`: metric → limit, a fraction; `lenient`: whether an inconclusive check passes."""

    study: Study
    analysis: Analysis
    headlines: tuple[Headline, ...]
    checks: tuple[LimitCheck, ...]
    limits: Mapping[str, float]
    lenient: bool
    notes: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        """The outcome of all arms together."""
        return worst([each.outcome for each in self.checks])

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that were checked, in the requested order."""
        return tuple(dict.fromkeys(each.metric for each in self.checks))

    def limit(self, metric: str) -> str:
        """The limit of a metric as text: `5 %`."""
        return f"{100 * self.limits[metric]:g} %"

    @property
    def sentence(self) -> str:
        """The outcome in a sentence: `FAIL: 1 of 5 overheads beyond 5 %, 2 of 5 inconclusive.`."""
        beyond, open_, of = self._count(Outcome.FAIL), self._count(Outcome.INCONCLUSIVE), len(self.checks)
        same = len({self.limits[metric] for metric in self.metrics}) == 1
        limit = self.limit(self.metrics[0]) if same else "their limits"
        if self.analysis.invalid:
            return "FAIL: the control differs from the baseline, so the study is invalid."
        if self.outcome is Outcome.PASS:
            return f"PASS: {'the one overhead' if of == 1 else f'all {of} overheads'} within {limit}."
        noisy = self._count(Outcome.TOO_NOISY)
        unknown = ", ".join(
            f"{count} of {of} {word}" for count, word in ((noisy, "too noisy"), (open_, "inconclusive")) if count
        )
        if self.outcome is Outcome.TOO_NOISY:
            return f"TOO NOISY TO DECIDE: {unknown}."
        if self.outcome is Outcome.INCONCLUSIVE:
            passed = ", which this check accepts" if self.lenient else ""
            return f"INCONCLUSIVE: {unknown}{passed}."
        return f"FAIL: {beyond} of {counted(of, 'overhead')} beyond {limit}{f', {unknown}' if unknown else ''}."

    def _count(self, outcome: Outcome) -> int:
        return sum(each.outcome is outcome for each in self.checks)


@dataclass(frozen=True)
class CheckRequest:
    """What to check. `limits`: metric → highest overhead, a fraction; `arms`: empty for all."""

    limits: Mapping[str, float]
    arms: tuple[str, ...] = ()
    lenient: bool = False


def build_check(
    study: Study,
    records: Sequence[RunRecord],
    asked: CheckRequest,
    unfinished: str | None = None,
    *,
    for_people: bool = True,
) -> Check:
    """Analyse the records and check them against the limits. `unfinished`: why more blocks are to come.

    `for_people`: mark the names of emulated arms; else only the file's own key says so. Raises `StudyError` for a
    metric or an arm that the study does not have.
    """
    if for_people:
        names = shown_names(study, emulated_arms(records))
        asked = replace(asked, arms=tuple(names.get(name, name) for name in asked.arms))
        study, records = with_marks(study, records)
    analysis = analyze(study, records)
    findings = tuple(_findings(study, analysis, asked))
    return Check(
        study=study,
        analysis=analysis,
        headlines=headlines(study, analysis),
        checks=check_limit(study, analysis, findings, asked.limits, unfinished),
        limits=asked.limits,
        lenient=asked.lenient,
        notes=warnings(analysis.alarms),
    )


def _findings(study: Study, analysis: Analysis, asked: CheckRequest) -> Iterator[Finding]:
    compared = [arm.name for arm in study.arms if not arm.control and study.baseline_of(arm.name) != arm.name]
    for name in asked.arms:
        if name not in compared:
            hint = did_you_mean(name, [plain(each, 60) for each in compared], kind="arms")
            raise StudyError(f"no arm {plain(name, 60)} is compared with a baseline here", hint=hint)
    known = [metric.name for metric in analysis.metrics]
    for metric in asked.limits:
        if metric not in known:
            raise StudyError(
                f"there is no metric {plain(metric, 60)}",
                hint=did_you_mean(metric, [plain(each, 60) for each in known], kind="metrics"),
            )
        yield from (analysis.finding(name, metric) for name in asked.arms or compared)


def in_words(one: LimitCheck) -> str:
    """Return the reason for an outcome; only the outcome if the row has the figures."""
    if one.why is not None:
        return f"{one.outcome.value.replace('-', ' ')}: {plain(one.why, 200)}"
    if one.outcome is Outcome.INCONCLUSIVE:
        return "inconclusive: the interval contains the limit"
    return one.outcome.value


def title(check: Check, metric: str) -> str:
    """Return a table's title: `Throughput: at most 5 % less`, `95th percentile latency: at most 5 % more`."""
    known = metric_named(metric)
    name = plain(known.title, 80)
    return (
        f"{name[0].upper()}{name[1:]}: at most {check.limit(metric)} {'less' if known.more_is_better else 'more'}"
    )


def figures(one: LimitCheck) -> tuple[str, str]:
    """Return the overhead and its interval in percent, with as many decimals as the interval supports."""
    estimate = Estimate(one.point, one.low, one.high, one.n, one.confidence, "")
    return percent(one.point, decimals_of(estimate)), interval(estimate)


def widened(check: Check, metric: str) -> str | None:
    """Return by how much intervals of a metric were widened; `None` if they were not."""
    widest = max((one.resolution or 0.0 for one in check.checks if one.metric == metric), default=0.0)
    return f"widened by one bucket of the histogram, {percent(widest, signed=False)}" if widest else None
