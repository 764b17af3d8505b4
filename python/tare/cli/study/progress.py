"""Progress on standard error: a live display on a terminal, elsewhere one line for each run."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tare.databases.registry import DATABASES
from tare.one_line import harmless
from tare.plan.estimate import SlowStarts, blocks_expected, no_slow_start, run_seconds, slow_starts
from tare.plan.model import Plan, PlannedRun
from tare.plural import counted
from tare.protocols.registry import runs_of_blocks
from tare.protocols.stopping import Decision, Progress
from tare.record.emulated import shown_names, union_of_sides
from tare.record.pilot import Choice, TurnChoice
from tare.record.run_record import Phase, RunRecord
from tare.run.events import (
    BlockEnded,
    Emulated,
    Event,
    FromSite,
    MeasureChosen,
    Notice,
    Observer,
    PhaseStarted,
    Preparing,
    RunEnded,
    RunStarted,
    SiteStands,
    Standing,
)
from tare.run.resume import StudyState, decision, plan_of
from tare.workloads.registry import WORKLOADS

_LAST_RUNS = 8
_MOST_SITES = 16
"""Sites that the display lists; a terminal has some forty lines."""
_REFRESH_PER_S = 4


@dataclass
class SiteRun:
    """Current work of a site: it prepares something, or makes a run."""

    began: float
    phase_began: float
    run: PlannedRun | None = None
    attempt: int = 1
    phase: Phase | None = None
    preparing: str | None = None


@dataclass
class Tally:
    """State of a running study: takes events, and is read by the displays."""

    plan: Plan
    done: StudyState
    clock: Callable[[], float] = time.monotonic
    slow: SlowStarts = no_slow_start
    run: PlannedRun | None = None
    attempt: int = 1
    phase: Phase | None = None
    preparing: str | None = None
    expected_s: float | None = None
    phase_began: float = 0.0
    spent: list[float] = field(default_factory=list)
    run_began: float | None = None
    choice: Choice | TurnChoice | None = None
    sites: dict[str, SiteStands] = field(default_factory=dict)
    """Standing of each of several sites; empty on one machine."""
    at: dict[str, SiteRun] = field(default_factory=dict)
    """Current work of each of several sites."""
    last: deque[RunRecord] = field(default_factory=lambda: deque(maxlen=_LAST_RUNS))

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.good = set(self.done.good)
        self.decision = decision(self.plan, self.done)
        self._blocks_before = self.decision.blocks
        self.emulated = dict(self.done.emulated)

    def take(self, event: Event) -> None:
        """Update the state by an event."""
        now = self.clock()
        if isinstance(event, FromSite | SiteStands):
            self._take_from_site(event)
        elif isinstance(event, Preparing):
            self.preparing, self.phase_began = event.what, now
        elif isinstance(event, RunStarted):
            self.run, self.attempt, self.run_began, self.preparing = event.run, event.attempt, now, None
        elif isinstance(event, PhaseStarted):
            self.phase, self.expected_s, self.phase_began = event.phase, event.expected_s, now
        elif isinstance(event, Emulated):
            self.emulated[event.run.arm] = union_of_sides(self.emulated.get(event.run.arm, ()), event.sides)
        elif isinstance(event, RunEnded):
            self._end(event.record, now)
        elif isinstance(event, BlockEnded):
            self.decision = event.decision
        elif isinstance(event, MeasureChosen):
            # Runs of the pilot do not tell how long later runs take.
            self.choice = event.choice
            self.spent.clear()

    def _end(self, record: RunRecord, now: float) -> None:
        site = None if record.site is None else self.at.pop(record.site, None)
        began = self.run_began if site is None else site.began
        self.spent.append(record.machine_s if began is None else now - began)
        self.run_began = None
        self.last.append(record)
        if record.outcome.ok:
            self.good.add(record.run_id)

    def _take_from_site(self, report: FromSite | SiteStands) -> None:
        """Update the state by what one of several sites reports, or by its standing."""
        if isinstance(report, SiteStands):
            self.sites[report.site] = report
            if report.standing is not Standing.AT_WORK:
                self.at.pop(report.site, None)
            return
        event, now = report.event, self.clock()
        if isinstance(event, Preparing):
            self.preparing, self.at[report.site] = None, SiteRun(now, now, preparing=event.what)
        elif isinstance(event, RunStarted):
            self.at[report.site] = SiteRun(now, now, event.run, event.attempt)
        elif isinstance(event, PhaseStarted) and (site := self.at.get(report.site)) is not None:
            site.phase, site.phase_began = event.phase, now
        elif isinstance(event, Emulated):
            self.take(event)

    @property
    def sites_left(self) -> Sequence[str]:
        """Names of the sites that still get blocks, sorted."""
        return sorted(n for n, stands in self.sites.items() if stands.standing is not Standing.SET_ASIDE)

    @property
    def blocks_an_hour(self) -> float | None:
        """Blocks an hour since tare started, all sites together; `None` before the first block."""
        made = self.decision.blocks - self._blocks_before
        return made / (self.elapsed_s / 3600) if made > 0 and self.elapsed_s > 0 else None

    @property
    def names(self) -> Mapping[str, str]:
        """Arm → name as it is shown."""
        return shown_names(self.plan.study, self.emulated)

    @property
    def elapsed_s(self) -> float:
        """Seconds since tare started."""
        return self.clock() - self.began

    @property
    def blocks(self) -> int:
        """Blocks expected in all: by the spread seen so far, else by the plan's estimate.

        Never fewer than have begun, as the blocks within a cap on time are estimated by the mean pace of runs.
        """
        study = self.plan.study
        paces = self.spent or [run_seconds(arm.settings, self.slow) for arm in study.arms]
        begun = 0 if self.run is None else self.run.block
        return max(begun, blocks_expected(study, self.decision, sum(paces) / len(paces)))

    @property
    def remaining_s(self) -> float:
        """Expected remaining seconds, at the mean pace of the attempts so far, or by the plan if there are none."""
        left = [run for run in self.plan.runs if run.id not in self.good and run.block <= self.blocks]
        if self.spent:
            total = len(left) * sum(self.spent) / len(self.spent) / max(1, len(self.sites_left))
        else:
            arms = [plan_of(self.plan, run, self.choice).arm(run.arm) for run in left]
            total = sum(run_seconds(arm.settings, self.slow) for arm in arms)
        under_way = 0.0 if self.run_began is None else self.clock() - self.run_began
        return max(0.0, total - under_way)


@contextmanager
def progress(plan: Plan, done: StudyState, *, quiet: bool) -> Iterator[Observer]:
    """Yield an observer that shows events on standard error, live if that is a terminal."""
    console = Console(stderr=True, highlight=False)
    tally = Tally(plan, done, slow=slow_starts(DATABASES, WORKLOADS))
    if quiet:
        yield lambda event: _print_failure(event, console)
    elif console.is_terminal:
        with Live(
            get_renderable=lambda: display(tally), console=console, refresh_per_second=_REFRESH_PER_S
        ) as live:
            yield lambda event: _follow(event, tally, live.console)
    else:
        yield lambda event: _log(event, tally)


def display(tally: Tally) -> Group:
    """Live display: current work, throughput of each arm so far, and results of the last runs."""
    blocks = tally.blocks
    head = f"{len(tally.good)} of about {runs_of_blocks(tally.plan.study, blocks)} runs"
    clock = f"elapsed {spoken(tally.elapsed_s)}, about {spoken(tally.remaining_s)} remaining"
    lines = [Text(f"{head}, {clock}", style="bold"), *_doing(tally, blocks)]
    known = [standing(tally.decision, tally.names)] if tally.decision.arms else []
    if not tally.last:
        return Group(*lines, *known)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("block", "arm", "result"):
        table.add_column(column)
    for record in tally.last:
        style = "" if record.outcome.ok else "red"
        table.add_row(str(record.block), Text(tally.names[record.arm]), Text(result(record), style=style))
    return Group(*lines, *known, table)


def standing(decided: Decision, names: Mapping[str, str]) -> Table:
    """Table of each arm's throughput against the baseline so far, and the blocks that it still needs."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("arm", "throughput so far", "blocks needed yet"):
        table.add_column(column)
    for name, arm in decided.arms.items():
        more = (
            "\N{EM DASH}" if arm.more_blocks is None else f"about {arm.more_blocks}" if arm.more_blocks else "none"
        )
        table.add_row(Text(names[name]), Text(so_far(arm)), Text(more))
    return table


def so_far(arm: Progress) -> str:
    """Throughput of an arm so far, such as `-2.1 % [-3.4, -0.8] after 8 blocks`."""
    if arm.point is None:
        return "no block with both arm and baseline yet"
    bounds = "" if arm.low is None or arm.high is None else f" [{100 * arm.low:+.1f}, {100 * arm.high:+.1f}]"
    return f"{100 * arm.point:+.1f} %{bounds} after {counted(arm.n, 'block')}"


def chosen(choice: Choice | TurnChoice) -> str:
    """Sentence on what the pilot chose."""
    return f"after the pilot, {choice.sentence}"


def result(record: RunRecord) -> str:
    """Result of a run in a few words."""
    measured = record.measurement
    if measured is None or measured.throughput_per_s is None:
        return harmless(f"attempt {record.attempt} failed in {record.outcome.failed_in}: {record.outcome.reason}")
    return f"{measured.throughput_per_s:,.1f} {measured.unit}/s"


def spoken(seconds: float) -> str:
    """Seconds as `42 s`, `3 min 05 s` or `2 h 07 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _doing(tally: Tally, blocks: int) -> list[Text]:
    """Lines on current work; for several sites, one each and their common pace."""
    if not tally.sites:
        return [Text(_now(tally, blocks))]
    pace = "" if tally.blocks_an_hour is None else f", {tally.blocks_an_hour:,.1f} blocks an hour"
    at_work = sum(each.standing is Standing.AT_WORK for each in tally.sites.values())
    shown = sorted(tally.sites)[:_MOST_SITES]
    more = len(tally.sites) - len(shown)
    return [
        Text(f"{at_work} of {counted(len(tally.sites), 'site')} at work{pace}"),
        *(Text(f"{site}: {_at_site(tally, tally.sites[site])}") for site in shown),
        *([Text(f"and {counted(more, 'more site')}")] if more else []),
    ]


def _at_site(tally: Tally, stands: SiteStands) -> str:
    if (site := tally.at.get(stands.site)) is None:
        return harmless(f"{stands.standing}{f': {stands.why}' if stands.why else ''}")
    in_phase = spoken(tally.clock() - site.phase_began)
    if site.run is None:
        return f"preparing {site.preparing or 'to start'} ({in_phase})"
    again = "" if site.attempt == 1 else f", attempt {site.attempt}"
    return f"block {site.run.block}, arm {tally.names[site.run.arm]}{again}: {site.phase or ''} ({in_phase})"


def _now(tally: Tally, blocks: int) -> str:
    in_phase = spoken(tally.clock() - tally.phase_began)
    if tally.preparing is not None or tally.run is None:
        return f"preparing {tally.preparing or 'to start'} ({in_phase})"
    again = "" if tally.attempt == 1 else f", attempt {tally.attempt}"
    of = f" of {spoken(tally.expected_s)}" if tally.expected_s else ""
    place = f"block {tally.run.block} of about {blocks}, arm {tally.names[tally.run.arm]}{again}"
    return f"{place}: {tally.phase or ''} ({in_phase}{of})"


def _follow(event: Event, tally: Tally, console: Console) -> None:
    tally.take(event)
    if isinstance(event, Notice):
        console.print(Text(harmless(event.text), style="yellow"))
    if isinstance(event, FromSite) and isinstance(event.event, Notice):
        console.print(Text(harmless(f"{event.site}: {event.event.text}"), style="yellow"))
    if isinstance(event, MeasureChosen):
        console.print(Text(chosen(event.choice)))
    if isinstance(event, RunEnded):
        for notice in event.record.notices:
            console.print(Text(harmless(f"{event.record.run_id}: {notice}"), style="yellow"))


def _log(event: Event, tally: Tally) -> None:
    tally.take(event)
    if isinstance(event, FromSite):
        if isinstance(event.event, Preparing | Notice):
            text = event.event.text if isinstance(event.event, Notice) else f"preparing {event.event.what}"
            _say(f"{event.site}: {text}")
    elif isinstance(event, Preparing):
        _say(f"preparing {event.what}")
    elif isinstance(event, RunEnded):
        record, blocks = event.record, tally.blocks
        expected = runs_of_blocks(tally.plan.study, blocks)
        where = "" if record.site is None else f" on {record.site}"
        place = f"[{len(tally.good)} of about {expected}] block {record.block} {tally.names[record.arm]}{where}"
        _say(f"{place}: {result(record)} (about {spoken(tally.remaining_s)} remaining)")
        for notice in record.notices:
            _say(f"{record.run_id}: {notice}")
    elif isinstance(event, BlockEnded):
        for name, arm in event.decision.arms.items():
            yet = "" if not arm.more_blocks else f", about {arm.more_blocks} more needed"
            _say(f"{tally.names[name]}: {so_far(arm)}{yet}")
    elif isinstance(event, MeasureChosen):
        _say(chosen(event.choice))
    elif isinstance(event, Notice):
        _say(event.text)


def _print_failure(event: Event, console: Console) -> None:
    if isinstance(event, RunEnded) and not event.record.outcome.ok:
        console.print(Text(f"{event.record.run_id}: {result(event.record)}"))


def _say(line: str) -> None:
    sys.stderr.write(harmless(f"{line}\n"))
    sys.stderr.flush()
