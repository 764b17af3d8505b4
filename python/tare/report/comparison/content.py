"""The content of a comparison of two stores, independent of its format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tare.analyze import Analysis
from tare.analyze.comparison import Change, Comparison
from tare.analyze.metrics import PRIMARY, metric_named
from tare.plural import counted
from tare.record.run_record import RunRecord
from tare.report.comparison.gate import Gate
from tare.report.comparison.surroundings import Unlike, surroundings
from tare.report.figures import decimals_of, interval, moment, percent
from tare.report.plain import plain
from tare.report.words.headlines import Headline, headlines
from tare.study.model import Study

READING = (
    "B against A: how much higher the ratio of arm to baseline is in B; +3 % in throughput is a smaller loss, or "
    "a larger gain, in B. Welch's 95 % intervals on the log ratios of blocks, not adjusted for multiple "
    "comparisons; a reported change also passes Holm's adjustment."
)
_NAMED = 3


@dataclass(frozen=True)
class Side:
    """One of the two stores. `unfinished`: why more blocks are to come, if they are."""

    label: str
    path: str
    study: Study
    records: tuple[RunRecord, ...]
    unfinished: str | None
    tare_version: str


@dataclass(frozen=True)
class Compared:
    """Everything that an exporter needs."""

    a: Side
    b: Side
    comparison: Comparison
    unlike: tuple[Unlike, ...]
    answer: str
    gate: Gate | None = None

    @property
    def alike(self) -> str:
        """The sentence for two stores without any difference."""
        if self.a.study.imported or self.b.study.imported:
            return "No recorded difference; for imported runs only the study is recorded."
        return "No recorded difference: study, machine, engine, images and settings are the same."

    @property
    def sides(self) -> tuple[tuple[Side, Analysis], ...]:
        """Both sides with their analyses."""
        return (self.a, self.comparison.a), (self.b, self.comparison.b)


def build_comparison(a: Side, b: Side, comparison: Comparison, gate: Gate | None = None) -> Compared:
    """Collect what is shown beside the figures."""
    arms = {
        *comparison.shared.arms,
        *(comparison.a.finding(arm, PRIMARY).baseline for arm in comparison.shared.arms),
    }
    return Compared(
        a=a,
        b=b,
        comparison=comparison,
        unlike=(
            *_of_tare(a, b),
            *surroundings(a.records, b.records, tuple(arms), comparison.shared.differences),
        ),
        answer=answer(comparison),
        gate=gate,
    )


def _of_tare(a: Side, b: Side) -> Iterator[Unlike]:
    if a.tare_version != b.tare_version:
        yield Unlike("study", "tare that made the store", a.tare_version, b.tare_version)


def answer(comparison: Comparison) -> str:
    """Say what has changed in the throughput overhead, with intervals; never that nothing has."""
    changes = [each for each in comparison.changes if each.metric == PRIMARY]
    bounded = [each for each in changes if each.difference.estimate.low is not None]
    if not bounded:
        whys = dict.fromkeys(each.difference.estimate.why or "no figures" for each in changes)
        return f"Throughput cannot be compared: {'; '.join(whys)}."
    if comparison.withheld is not None:
        return f"No verdict, since {comparison.withheld}."
    changed = sorted((each for each in bounded if each.changed), key=_size, reverse=True)
    rest = [each for each in bounded if not each.changed]
    parts = []
    if changed:
        named = [
            f"{plain(each.arm, 60)} {shown_change(each)[0]} ({shown_change(each)[1]} %)"
            for each in changed[:_NAMED]
        ]
        more = f" and {counted(len(changed) - _NAMED, 'more arm')}" if len(changed) > _NAMED else ""
        parts.append(f"The throughput overhead has changed from A to B in {', '.join(named)}{more}")
    if rest:
        least = max(rest, key=_reach)
        what = "no change was shown" if changed else "No change of the throughput overhead was shown"
        of = f"the other {counted(len(rest), 'arm')}" if changed else counted(len(rest), "arm")
        parts.append(f"{what} in {of}; changes up to {percent(_reach(least), signed=False)} could hide")
    return f"{'; '.join(parts)}."


def shown_change(change: Change) -> tuple[str, str]:
    """Return the difference and its interval, in percent."""
    estimate = change.difference.estimate
    return percent(estimate.point, decimals_of(estimate)), interval(estimate)


def changed_elsewhere(comparison: Comparison, shown: Sequence[str]) -> tuple[Change, ...]:
    """Return what has changed in metrics that are not shown."""
    return tuple(each for each in comparison.changes if each.changed and each.metric not in shown)


def source(side: Side, analysis: Analysis) -> str:
    """Describe a side: `A, demo-store: 2026-11-21 14:02 UTC, 8 blocks, 56 good runs`."""
    began = min((time.began_at for run in side.records for time in run.phases), default=None)
    parts = [] if began is None else [moment(began)]
    parts += [
        counted(len(analysis.blocks), "block"),
        f"{analysis.good} good of {counted(analysis.attempted, 'run')}",
    ]
    parts += [] if side.unfinished is None else ["not ended yet"]
    return f"{side.label}, {plain(side.path, 120)}: {', '.join(parts)}"


def headlines_of(side: Side, analysis: Analysis) -> tuple[Headline, ...]:
    """Return the headlines above the figures of one side."""
    return tuple(
        Headline(f"{side.label}. {headline.text}", headline.grave) for headline in headlines(side.study, analysis)
    )


def verdict(change: Change) -> str:
    """Return the verdict in a word or two, or why there is no figure."""
    if change.difference.estimate.low is None:
        return plain(change.difference.estimate.why or "not known", 120)
    if change.below_resolution:
        return "not resolved"
    return "changed" if change.changed else "not shown"


def p_value(change: Change) -> str:
    """Format the p-value: `0.012`, `<0.001`."""
    if change.p_zero is None:
        return "\N{EM DASH}"
    return "<0.001" if change.p_zero < 0.001 else f"{change.p_zero:.3f}"


@dataclass(frozen=True)
class Absolute:
    """An arm's median throughput in both stores: context, without an interval."""

    arm: str
    unit: str
    a: float | None
    b: float | None
    emulated: bool = False
    """In either store."""

    @property
    def ratio(self) -> float | None:
        """B relative to A, as a fraction."""
        return self.b / self.a - 1 if self.a and self.b is not None else None


def absolutes(compared: Compared) -> tuple[Absolute, ...]:
    """Return the throughput of the arms that both stores have, in order, baselines first."""
    sides = [{arm.arm: arm for arm in analysis.arms} for _, analysis in compared.sides]
    return tuple(
        Absolute(
            name,
            f"{arm.unit or 'operations'}{metric_named(PRIMARY).unit}",
            arm.values[PRIMARY].median,
            sides[1][name].values[PRIMARY].median,
            any(side[name].emulated for side in sides),
        )
        for name, arm in sides[0].items()
        if name in sides[1]
    )


def _size(change: Change) -> float:
    point = change.difference.estimate.point
    return 0.0 if point is None else abs(point)


def _reach(change: Change) -> float:
    estimate = change.difference.estimate
    return max(abs(end) for end in (estimate.low, estimate.high) if end is not None)
