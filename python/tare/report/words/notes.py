"""Notes beside the table: what failed, what is missing, what could not be resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from tare.analyze import Analysis, Finding
from tare.analyze.derived import throttled_share
from tare.analyze.metrics import PRIMARY
from tare.analyze.runs import Failure
from tare.analyze.validity import Alarm
from tare.plural import counted
from tare.protocols.pilot import BLOCKS
from tare.record.pilot import TurnChoice
from tare.record.run_record import NOTHING, RunRecord
from tare.report.figures import WITHIN_RESOLUTION, percent
from tare.report.plain import plain
from tare.report.words.answer import is_paired
from tare.run.ending import Ending

_NAMED_RUNS = 6
_NAMED_ARMS = 8
_NAMED_SITES = 8
_FEW_SITES = 5
LONGEST = 2000
_REASON = 700
"""Most characters of a sentence in reports, with the advice at its end."""
T = TypeVar("T", bound=Hashable)


def made(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Describe how the runs were made, a sentence each."""
    return (*_pilot(records), *_extended(records), *_unwatched(records), *_throttled(records))


def _pilot(records: Sequence[RunRecord]) -> Iterator[str]:
    chosen = next((record.pilot for record in records if record.pilot is not None), None)
    if chosen is None:
        return
    if isinstance(chosen, TurnChoice):
        yield f"A pilot, which is not among the runs, chose {chosen.sentence}."
        return
    like = "" if chosen.measure_s == chosen.pilot_s else "; they count like the others"
    yield f"Blocks 1 to {BLOCKS} are a pilot{like}. After it, {chosen.sentence}."


def _extended(records: Sequence[RunRecord]) -> Iterator[str]:
    plans = len({record.plan_digest for record in records})
    if plans > 1:
        times = "once" if plans == 2 else f"{plans - 1} times"
        yield (f"The study was extended {times}: its runs come from {plans} plans with different caps.")


def _unwatched(records: Sequence[RunRecord]) -> Iterator[str]:
    """Yield the optional monitors that did not watch all runs."""
    watched = [(name, each) for record in records for name, each in (record.monitors or {}).items()]
    missed = Counter((name, each.absent) for name, each in watched if each.absent not in (None, NOTHING))
    for (name, why), runs in missed.items():
        yield f"The monitor {plain(name, 40)} did not watch {runs} of {len(records)} runs: {plain(str(why), 300)}."


def _throttled(records: Sequence[RunRecord]) -> Iterator[str]:
    """Yield how often a CPU quota held the server back, the arms with a quota that it did, the most first."""
    shares: dict[str, list[float]] = {}
    for record in records:
        share = throttled_share(record)
        if share is not None and record.outcome.ok:
            shares.setdefault(record.arm, []).append(share)
    held = sorted(
        (arm for arm, of_arm in shares.items() if any(of_arm)), key=lambda arm: (-median(shares[arm]), arm)
    )
    if held:
        each = ", ".join(
            f"{plain(arm, 60)} {percent(median(shares[arm]), signed=False)}" for arm in held[:_NAMED_ARMS]
        )
        more = "" if len(held) <= _NAMED_ARMS else f" and {counted(len(held) - _NAMED_ARMS, 'more arm')}"
        others = "" if len(held) == len(shares) else "; others: none"
        yield (
            "The server's CPU quota ran out in this share of its periods (median of the runs): "
            f"{each}{more}{others}."
        )


def warnings(alarms: Sequence[Alarm]) -> tuple[str, ...]:
    """Format alarms: `few-blocks, bridge and host: … Runs: … To do: …`; one sentence for arms with the same."""
    groups: dict[tuple[str, str, str], list[Alarm]] = {}
    for alarm in alarms:
        groups.setdefault((alarm.rule, alarm.what, alarm.do), []).append(alarm)
    return tuple(_sentence(group) for group in groups.values())


def _sentence(group: Sequence[Alarm]) -> str:
    first = group[0]
    arms = [plain(alarm.arm, 60) for alarm in group if alarm.arm is not None]
    if len(arms) > _NAMED_ARMS:
        arms = [*arms[:_NAMED_ARMS], f"{len(arms) - _NAMED_ARMS} more"]
    *most, last = arms or ["every arm"]
    subject = f"{', '.join(most)} and {last}" if most else last
    runs = list(dict.fromkeys(run for alarm in group for run in alarm.runs))
    more = f" and {len(runs) - _NAMED_RUNS} more" if len(runs) > _NAMED_RUNS else ""
    named = f" Runs: {', '.join(plain(run, 80) for run in runs[:_NAMED_RUNS])}{more}." if runs else ""
    return f"{first.rule}, {subject}: {first.what}.{named} To do: {first.do}."


def notes(analysis: Analysis, planned: int) -> tuple[str, ...]:
    """Return the notes, a sentence each, the gravest first; see `failures` for failed attempts."""
    return (
        *_without_result(analysis),
        *_unfinished(analysis, planned),
        *_sites(analysis),
        *_hosts(analysis),
        *_dropped(analysis),
        *_without_interval(analysis),
    )


def ended(ending: Ending | None) -> tuple[str, ...]:
    """Return why there is no further block."""
    return () if ending is None else (f"{ending.why[0].upper()}{ending.why[1:]}.",)


def failures(analysis: Analysis, longest: int = 8) -> tuple[str, ...]:
    """Return each failed attempt in a sentence; the rest of a long list in one."""
    shown = tuple(failure_text(failure) for failure in analysis.failures[:longest])
    more = len(analysis.failures) - longest
    if more <= 0:
        return shown
    return (
        *shown,
        f"{more} more {'attempt' if more == 1 else 'attempts'} failed; `--format json` lists all of them.",
    )


def failure_text(failure: Failure) -> str:
    """Describe a failure: `b02-3-bridge, attempt 1, failed in measure: …`."""
    where = f" in {failure.phase}" if failure.phase else ""
    again = "; another attempt is used" if failure.made_good else "; no other attempt was good"
    reason = plain(failure.reason, _REASON).rstrip(".")
    return f"{plain(failure.run_id, 80)}, attempt {failure.attempt}, failed{where}: {reason}{again}."


def _unfinished(analysis: Analysis, planned: int) -> Iterator[str]:
    if analysis.attempted < planned:
        yield f"{analysis.attempted} of {planned} planned runs are done; `tare run` resumes with the rest."


def _sites(analysis: Analysis) -> Iterator[str]:
    """Describe intervals over several sites, and how much the sites differ in throughput."""
    several = [
        (one.arm, one.over_sites)
        for one in analysis.findings
        if one.metric == PRIMARY and one.over_sites is not None
    ]
    if not several:
        return
    sites = max(len(over.sites) for _, over in several)
    freedom = counted(sites - 1, "degree")
    few = "" if sites > _FEW_SITES else f"; with {sites} sites t has {freedom} of freedom, so they are wide"
    yield f"Intervals are over {sites} sites and their blocks, with a separate effect for each site{few}."
    for arm, over in several:
        chance = "" if over.between_p is None else f" (p {over.between_p:.2g} that they do not differ)"
        coming = (
            ""
            if over.next_low is None or over.next_high is None
            else f"; on another such site {percent(over.next_low)} to {percent(over.next_high)} is expected"
        )
        each = ", ".join(f"{plain(site.site, 40)} {percent(site.point)}" for site in over.sites[:_NAMED_SITES])
        more = "" if sites <= _NAMED_SITES else f" and {sites - _NAMED_SITES} more"
        yield (
            f"Throughput of {plain(arm, 60)}: {each}{more}; sites differ by {100 * over.between:.1f} % (standard "
            f"deviation){chance}{coming}."
        )


def _hosts(analysis: Analysis) -> Iterator[str]:
    """Describe how the two machines differ, and whether an arm costs more on one of them."""
    machines = analysis.machines
    if machines is None:
        return
    own, turned, one = plain(machines.own, 40), plain(machines.turned, 40), machines.estimate
    known = "" if one.low is None or one.high is None else f" [{percent(one.low)}, {percent(one.high)}]"
    worth = "" if one.point is None else f": throughput is {percent(one.point)}{known} with the server on {turned}"
    yield f"Server and client swapped hosts every other block, starting with the server on {own}{worth}."
    for finding in analysis.findings:
        over = finding.over_hosts
        if finding.metric == PRIMARY and over is not None:
            each = ", ".join(f"{percent(host.point)} on {plain(host.host, 40)}" for host in over.hosts)
            chance = "" if over.apart_p is None else f" (p {over.apart_p:.2g} that they do not differ)"
            yield f"Throughput of {plain(finding.arm, 60)}: {each}{chance}; both hosts have equal weight."


def _dropped(analysis: Analysis) -> Iterator[str]:
    for (dropped, paired), arms in _alike(analysis, lambda one: (one.dropped, is_paired(one.estimate))).items():
        if dropped:
            blocks = ", ".join(f"block {each.block} ({plain(each.why, 200)})" for each in dropped)
            if paired:
                yield f"{arms.subject} {arms.verb('is', 'are')} compared without {blocks}."
            else:
                yield f"{arms.subject} {arms.verb('has', 'have')} no pair in {blocks}; its runs there still count."


def _without_result(analysis: Analysis) -> Iterator[str]:
    if barren := barren_arms(analysis):
        *most, last = map(plain, barren)
        subject = f"{', '.join(most)} and {last}" if most else last
        yield f"{subject} {'have' if most else 'has'} no result: every attempt failed."


def barren_arms(analysis: Analysis) -> tuple[str, ...]:
    """Return the arms that were attempted and have no good run."""
    return tuple(arm.arm for arm in analysis.arms if arm.attempted and not arm.good)


def _without_interval(analysis: Analysis) -> Iterator[str]:
    barren = barren_arms(analysis)
    for why, arms in _alike(
        analysis, lambda finding: None if finding.arm in barren else finding.estimate.why
    ).items():
        if why is not None:
            yield f"{arms.subject} {arms.verb('is', 'are')} without an interval: {why}."


def legend(analysis: Analysis) -> tuple[str, ...]:
    """What the mark of a difference within the generator's resolution means; empty where no finding bears it."""
    widths = {
        each.resolution for each in analysis.findings if each.below_resolution and each.resolution is not None
    }
    if not widths:
        return ()
    width = percent(max(widths), signed=False)
    generator = f"the resolution of the generator's histogram ({width})"
    return (f"{WITHIN_RESOLUTION} within {generator}: no difference can be claimed.",)


@dataclass(frozen=True)
class Arms:
    """Arms of which the same is to be said."""

    names: tuple[str, ...]
    every: bool
    """There are others, and these are all of them."""

    @property
    def subject(self) -> str:
        """Their names, as the beginning of a sentence."""
        if self.every:
            return "Every arm"
        *most, last = (plain(name, 80) for name in self.names)
        return f"{', '.join(most)} and {last}" if most else last

    def verb(self, one: str, several: str) -> str:
        """Return the verb form that goes with the subject."""
        return one if self.every or len(self.names) == 1 else several


def _alike(analysis: Analysis, sentence_of: Callable[[Finding], T]) -> dict[T, Arms]:
    """Sentence about the primary metric → the arms that it applies to."""
    findings = [finding for finding in analysis.findings if finding.metric == PRIMARY]
    names: dict[T, list[str]] = {}
    for finding in findings:
        names.setdefault(sentence_of(finding), []).append(finding.arm)
    return {what: Arms(tuple(arms), len(arms) == len(findings) > 1) for what, arms in names.items()}
