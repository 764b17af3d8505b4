"""The blocks of a study on several sites: their state, which may start, and on which site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from tare.plan.model import Plan, PlannedRun
from tare.protocols.registry import PROTOCOLS
from tare.protocols.stopping import Decision, Finished
from tare.record.run_record import RunRecord
from tare.run.execute import Kept
from tare.run.fleet.assignment import last_block, places_of, site_of_block
from tare.run.resume import StateBuilder, StudyState, choice_of, finished_block


@dataclass(frozen=True)
class Orphaned:
    """Remaining runs of a block that started on a site which is no longer available."""

    block: int
    site: str
    runs: tuple[PlannedRun, ...]


class BlockSchedule:
    """State of all blocks, for use in one thread.

    Adding a record takes constant time; decisions are recomputed when a block ends.
    """

    def __init__(self, plan: Plan, done: StudyState, made: Sequence[RunRecord], sites: Sequence[str]) -> None:
        self._plan, self._builder, self._sites = plan, StateBuilder(done), list(sites)
        self._places = dict(places_of(made))
        self._first = _first_runs(made)
        self._assigned: dict[int, str] = {}
        """Blocks that have not started, by the remaining site that they are assigned to."""
        self._runs: dict[int, list[PlannedRun]] = {}
        for run in plan.runs:
            self._runs.setdefault(run.block, []).append(run)
        self._open = {block: None for block in self._runs if self._left(block)}
        """Blocks with a run that is neither good nor tried in this call of tare, in order."""
        self._order = sorted(self._runs)
        self._place = {block: n for n, block in enumerate(self._order)}
        self._finished: list[Finished] = []
        self._site_removed = True
        self._decide()

    @property
    def done(self) -> StudyState:
        """State of the study so far."""
        return self._builder.state

    def _decide(self) -> None:
        self._extend()
        study = self._plan.study
        stop = PROTOCOLS[study.protocol.name].stop
        self.decided: Decision = stop(study.baseline, tuple(self._finished), study.protocol)
        self.choice = choice_of(self._plan, self.done)
        self._last = last_block(self._plan, self.decided, self.choice)

    def _extend(self) -> None:
        for block in self._order[len(self._finished) :]:
            if (over := finished_block(self._plan, self.done, block, self._runs[block])) is None:
                return
            self._finished.append(over)

    # What may start

    def next_blocks(self, idle: set[str], in_progress: Container[int]) -> Iterator[tuple[str, int]]:
        """Yield idle sites with the block that each is to make next."""
        left = set(idle)
        for block in self._startable(in_progress):
            if not left:
                return
            if (site := self.site_of(block)) in left:
                left.remove(site)
                yield site, block

    def can_start(self, in_progress: Container[int]) -> bool:
        """Whether an idle site can start another block."""
        return next(self._startable(in_progress), None) is not None

    def _startable(self, in_progress: Container[int]) -> Iterator[int]:
        for block in list(self._open):
            if block > self._last:
                return
            if block not in in_progress:
                yield block

    def site_of(self, block: int) -> str:
        """Return the site where a block has started, or else the site that it is assigned to."""
        if block in self._places:
            return self._places[block]
        if block not in self._assigned:
            self._assigned[block] = site_of_block(self._plan, self._sites, block)
        return self._assigned[block]

    def task_of(self, block: int) -> tuple[Plan, StudyState]:
        """Return the plan with the runs of this block only, and their state so far."""
        runs, done = self._runs[block], self.done
        good = frozenset(run.id for run in runs if run.id in done.good)
        attempts = Counter({run.id: done.attempts[run.id] for run in runs})
        return self._plan.model_copy(update={"runs": tuple(runs)}), StudyState(good=good, attempts=attempts)

    def references_on(self, site: str) -> tuple[RunRecord, ...]:
        """Return the first good run of each arm on a site."""
        return tuple(self._first.get(site, {}).values())

    # What was made

    def known(self, record: RunRecord) -> bool:
        """Whether a record is known already: other schedulers give a lost worker's task to the next worker."""
        return record.run_id in self.done.good or record.attempt <= self.done.attempts[record.run_id]

    def note(self, site: str, kept: Kept) -> None:
        """Add what a site has made; updates `decided` and `choice`."""
        self._builder.add(*kept)
        for record in kept:
            if record.outcome.ok:
                self._places.setdefault(record.block, site)
                self._first.setdefault(site, {}).setdefault(record.arm, record)
        over = False
        for block in {record.block for record in kept}:
            if not self._left(block):
                self._open.pop(block, None)
            over |= self._is_over(block)
        if over:
            self._decide()

    def _is_over(self, block: int) -> bool:
        """Whether a block is finished and all blocks before it are, so that the decision may change."""
        again = finished_block(self._plan, self.done, block, self._runs[block])
        if again is None:
            return False
        place = self._place[block]
        if place < len(self._finished):
            self._finished[place] = again
        return place <= len(self._finished)

    def _left(self, block: int) -> list[PlannedRun]:
        return [run for run in self._runs[block] if run.id not in self.done.good]

    def tried(self, block: int) -> None:
        """Mark a block as tried: it is not started again in this call of tare."""
        self._open.pop(block, None)

    # Unavailable sites

    def remove_site(self, site: str) -> None:
        """Remove a site, and assign blocks that have not started to the others."""
        self._sites.remove(site)
        self._assigned.clear()
        self._site_removed = True

    def orphaned(self) -> tuple[Orphaned, ...]:
        """Return needed blocks that cannot be made elsewhere; they count as tried."""
        if not self._site_removed:
            return ()
        most = max(self.decided.blocks + 1, self._last)
        lost = [block for block, site in self._places.items() if site not in self._sites and block in self._open]
        self._site_removed = any(block > most for block in lost)  # they may be needed later
        needed = [block for block in lost if block <= most]
        for block in needed:
            self.tried(block)
        return tuple(Orphaned(block, self._places[block], tuple(self._left(block))) for block in needed)


def _first_runs(made: Sequence[RunRecord]) -> dict[str, dict[str, RunRecord]]:
    """Site → arm → its first good run there."""
    by_arm: dict[str, dict[str, RunRecord]] = {}
    for record in sorted(made, key=lambda one: (one.index, one.attempt)):
        if record.outcome.ok and record.site is not None:
            by_arm.setdefault(record.site, {}).setdefault(record.arm, record)
    return by_arm
