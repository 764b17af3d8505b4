"""Several coordinators of one study: who makes which block, by the store that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tare.plan.model import Plan, PlannedRun
from tare.run.clock import Clock
from tare.run.events import Notice, Observer
from tare.run.fleet.dealing import last_block, places_of
from tare.run.interrupts import Interrupts
from tare.run.record import RunRecord
from tare.run.resume import StudyState, choice_of, decision, remaining
from tare.study.protocol_spec import FixedSpec

EVERYTHING = 0
"""A claim of it is one of all blocks."""
POLL_S = 2.0


class Claims(Protocol):
    """Of blocks, in a store that several tares write."""

    def take(self, block: int) -> bool:
        """Whether the block is this tare's from now on, until it is given back or this tare is gone."""
        ...

    def give_back(self, block: int) -> None:
        """Others may have it."""
        ...

    def news(self) -> Sequence[RunRecord]:
        """What was committed since this was asked last, by whomever; the first time all that there is."""
        ...


@dataclass
class Turns:
    """What is left for the coordinator of one site to do, block by block.

    Blocks of others are waited for, as those others may be lost. One that was begun on another site is left to it.
    """

    plan: Plan
    claims: Claims
    site: str | None
    clock: Clock
    interrupts: Interrupts
    observer: Observer
    _mine: int | None = None
    _failed: Counter[str] = field(default_factory=Counter)
    _places: dict[int, str] = field(default_factory=dict)
    _stranded: set[int] = field(default_factory=set)
    _waits: bool = False

    def next(self, done: StudyState, tried: set[str]) -> tuple[StudyState, list[PlannedRun]]:
        """What all have made, and the runs left of the block that this one has; none once there is nothing left.

        `tried`: runs that are not tried again in this session; those of which others have used up the retries
        are added.
        """
        while True:
            done = self._heard(done, tried)
            left = [run for run in remaining(self.plan, done) if run.id not in tried]
            own = [run for run in left if self._claim_of(run) == self._mine]
            if own:
                return done, own
            if self._mine is not None:
                self.claims.give_back(self._mine)
                self._mine = None
            left = [run for run in left if run.block not in self._stranded]
            if not left:
                return done, []
            if not self._claim(done, left):
                self._tell_waiting()
                with self.interrupts.allowed():
                    self.clock.sleep(POLL_S)

    def _tell_waiting(self) -> None:
        if not self._waits:
            self._waits = True
            self.observer(Notice("waiting: another tare has the blocks that are left of this study"))

    def _claim(self, done: StudyState, left: Sequence[PlannedRun]) -> bool:
        """Whether anything has changed: a block is this one's, or is seen to be another site's that is away."""
        if self.site is None or _follow_each_other(self.plan):
            self._mine = EVERYTHING if self.claims.take(EVERYTHING) else None
            return self._mine is not None
        most = last_block(self.plan, decision(self.plan, done), choice_of(self.plan, done))
        for block in dict.fromkeys(run.block for run in left if run.block <= most):
            if not self.claims.take(block):
                continue
            elsewhere = self._places.get(block, self.site)
            if elsewhere == self.site:
                self._mine = block
                return True
            self.claims.give_back(block)
            self._stranded.add(block)
            text = f"block {block} was begun on the site {elsewhere}, whose tare is gone: run it there again"
            self.observer(Notice(text))
        return False

    def _claim_of(self, run: PlannedRun) -> int:
        return EVERYTHING if self._mine == EVERYTHING else run.block

    def _heard(self, done: StudyState, tried: set[str]) -> StudyState:
        news = self.claims.news()
        for block, site in places_of(news).items():
            self._places.setdefault(block, site)
        self._stranded -= {record.block for record in news}
        new = [record for record in news if record.attempt > done.attempts[record.run_id]]
        self._failed.update(record.run_id for record in new if not record.outcome.ok)
        most = self.plan.study.protocol.retries
        tried |= {run for run, failures in self._failed.items() if failures > most}
        return done.plus(*new) if new else done


def _follow_each_other(plan: Plan) -> bool:
    """Then all blocks are under way at once."""
    protocol = plan.study.protocol
    return isinstance(protocol, FixedSpec) and protocol.sequence == "together"
