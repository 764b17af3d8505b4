"""Several coordinators of one study: who makes which block, decided through their shared store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tare.plan.model import Plan, PlannedRun
from tare.record.run_record import RunRecord
from tare.run.clock import Clock
from tare.run.events import Notice, Observer
from tare.run.fleet.assignment import last_block, places_of
from tare.run.interrupts import Interrupts
from tare.run.resume import StudyState, choice_of, decision, remaining
from tare.study.protocol_spec import FixedSpec

EVERYTHING = 0
"""A claim on block 0 is a claim on all blocks."""
POLL_S = 2.0


class Claims(Protocol):
    """Claims on blocks, in a store that several tare processes write."""

    def take(self, block: int) -> bool:
        """Whether this process now holds the block, until it gives the block back or is gone."""
        ...

    def give_back(self, block: int) -> None:
        """Release the block for others."""
        ...

    def news(self) -> Sequence[RunRecord]:
        """Return the records committed by anybody since the last call; all records in the first call."""
        ...


@dataclass
class Turns:
    """Decides what the coordinator of one site does next, block by block.

    Blocks that others hold are waited for, since their holders may be lost. A block that was started on another
    site is left to that site.
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
    _waiting_announced: bool = False

    def next(self, done: StudyState, tried: set[str]) -> tuple[StudyState, list[PlannedRun]]:
        """Return the state of the whole study and the remaining runs of the block held; no runs if nothing is left.

        `tried`: runs that are not tried again in this call of tare; runs whose retries others have used up are
        added.
        """
        while True:
            done = self._read_news(done, tried)
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
                self._announce_waiting()
                with self.interrupts.allowed():
                    self.clock.sleep(POLL_S)

    def _announce_waiting(self) -> None:
        if not self._waiting_announced:
            self._waiting_announced = True
            self.observer(Notice("waiting: another tare is running the remaining blocks of this study"))

    def _claim(self, done: StudyState, left: Sequence[PlannedRun]) -> bool:
        """Claim a block or find that another, absent site started it; whether either happened."""
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

    def _read_news(self, done: StudyState, tried: set[str]) -> StudyState:
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
    """Whether runs of an arm follow each other, so that all blocks are in progress at once."""
    protocol = plan.study.protocol
    return isinstance(protocol, FixedSpec) and protocol.sequence == "together"
