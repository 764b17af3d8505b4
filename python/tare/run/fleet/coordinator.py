"""The one who gives out blocks and keeps what comes of them: plan → records, on many sites at once."""

from __future__ import annotations

import pickle
import queue
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tare.errors import EnvironmentLacks, StudyError
from tare.plan.model import Plan, PlannedRun
from tare.run.attempt.job import unmade_record
from tare.run.clock import Clock, SystemClock
from tare.run.events import (
    BlockEnded,
    FromSite,
    MeasureChosen,
    Notice,
    Observer,
    RunEnded,
    SiteStands,
    Standing,
)
from tare.run.execute import Destination, Kept
from tare.run.fleet.block_task import BlockTask, make_block
from tare.run.fleet.crew import Crew
from tare.run.fleet.dealing import last_block, places_of, site_of_block
from tare.run.fleet.handover import handed_over, staged_name
from tare.run.fleet.site_process import resource_of
from tare.run.interrupts import Interrupts
from tare.run.record import RunRecord
from tare.run.resume import StudyState, choice_of, decision
from tare.study.protocol_spec import FixedSpec

if TYPE_CHECKING:
    from distributed import Future

STRIKES = 3
"""Failures in a row after which a site is left alone."""
PATIENCE_S = 5.0
"""Before a site is tried again that failed, once for each failure in a row."""
_LOOK_S = 0.5


@dataclass(frozen=True)
class Fleet:
    """Sites by name, whoever works on them, and the store that blocks are kept in."""

    sites: Sequence[str]
    crew: Crew
    store: Path
    interrupts: Interrupts = field(default_factory=Interrupts)
    clock: Clock = field(default_factory=SystemClock)
    patience_s: float = PATIENCE_S


@dataclass
class _UnderWay:
    """`spool`: tare's own directory of the task."""

    task: BlockTask
    spool: Path
    future: Future[int]


@dataclass
class _Site:
    """What is known of a site: failures in a row, when it may be tried again, and whether its process knows all."""

    strikes: int = 0
    not_before: float = 0.0
    fresh: bool = True
    under_way: _UnderWay | None = None
    told: Standing | None = None


def execute_on(
    fleet: Fleet, plan: Plan, destination: Destination, made: Sequence[RunRecord], observer: Observer
) -> Iterator[Kept]:
    """Yield records as they come in, from blocks on all sites at once; the caller commits each before the next.

    `made`: the records that the store has. All arms of a block are made on one site. A site that fails three times
    in a row is set aside: blocks that it has no good run of go to others; of those that it has, each run that is
    left gets a failed attempt that names the reason. Raises `EnvironmentLacks` when no site is left, `Interrupted`
    between or within runs, and `StudyError` for a plan whose runs have to follow each other on one machine.
    """
    try:
        refuse_one_order(plan, made)
        yield from _Coordinator(fleet, plan, destination, made, observer).run()
    finally:
        fleet.crew.close()


def refuse_one_order(plan: Plan, made: Sequence[RunRecord] = ()) -> None:
    """Raise `StudyError` for a plan that cannot be made on several sites."""
    protocol = plan.study.protocol
    if isinstance(protocol, FixedSpec) and protocol.sequence == "together":
        what = "each arm's runs follow each other (protocol.sequence: together), which takes one site"
        raise StudyError(what, hint="choose a site by --site NAME")
    if any(record.outcome.ok and record.site is None for record in made):
        what = "the store has runs that were made on this machine alone"
        raise StudyError(what, hint="go on without --sites, or give the sites a store of their own with --store")


class _Coordinator:
    def __init__(
        self,
        fleet: Fleet,
        plan: Plan,
        destination: Destination,
        made: Sequence[RunRecord],
        observer: Observer,
    ) -> None:
        self._fleet, self._plan, self._destination, self._observer = fleet, plan, destination, observer
        self._done = destination.done
        self._places = dict(places_of(made))
        self._first = _first_runs(made)
        self._sites = {name: _Site() for name in fleet.sites}
        self._dealt: dict[int, str] = {}
        """Blocks that are not begun, among the sites that are left."""
        self._tried: set[int] = set()
        self._messages: queue.SimpleQueue[tuple[str, str, Any]] = queue.SimpleQueue()
        self._topic = f"tare-{uuid4().hex}"
        self._couriers = {name: ThreadPoolExecutor(1, f"from-{name}") for name in fleet.sites}
        """One a site, so that a long delivery from one keeps no other waiting, and messages stay in order."""
        self._under_way: dict[str, tuple[str, Path]] = {}
        """Task → its site and spool, for the threads that bring something."""
        self._blocks: dict[int, list[PlannedRun]] = {}
        for run in plan.runs:
            self._blocks.setdefault(run.block, []).append(run)
        self._decided = decision(plan, self._done)
        self._told_blocks, self._chosen = 0, False

    def run(self) -> Iterator[Kept]:
        """Until nothing is left to do that could be done."""
        try:
            yield from self._made()
        finally:
            for courier in self._couriers.values():
                courier.shutdown(wait=False, cancel_futures=True)

    def _made(self) -> Iterator[Kept]:
        self._fleet.crew.client.subscribe_topic(self._topic, self._heard)
        while True:
            yield from self._given_up()
            self._begin()
            self._tell_standings()
            if not any(site.under_way for site in self._sites.values()) and not self._waiting():
                break
            yield from self._next()
        self._observer(BlockEnded(self._decided))

    # What may be begun

    def _begin(self) -> None:
        now = self._fleet.clock.monotonic()
        choice = choice_of(self._plan, self._done)
        if choice is not None and not self._chosen:
            self._chosen = True
            self._observer(MeasureChosen(choice))
        idle = {
            name
            for name, site in self._sites.items()
            if site.under_way is None and site.not_before <= now and self._fleet.crew.ready(name)
        }
        for block in list(self._open(last_block(self._plan, self._decided, choice))) if idle else ():
            if (name := self._site_of(block)) in idle:
                idle.remove(name)
                self._submit(name, self._sites[name], block, choice)

    def _tell_standings(self) -> None:
        for name, site in self._sites.items():
            if site.under_way is not None:
                self._tell_standing(name, site, Standing.AT_WORK)
            elif not self._fleet.crew.ready(name):
                self._tell_standing(name, site, Standing.AWAY)
            elif not site.strikes:
                self._tell_standing(name, site, Standing.IDLE)

    def _tell_standing(self, name: str, site: _Site, standing: Standing, why: str = "") -> None:
        if site.told is not standing:
            site.told = standing
            self._observer(SiteStands(name, standing, why))

    def _open(self, last: int) -> Iterator[int]:
        """Blocks up to `last` with a run that is not good yet and that was not tried in this session, in order."""
        under_way = {site.under_way.task.block for site in self._sites.values() if site.under_way}
        for block, runs in self._blocks.items():
            if block > last:
                return
            if block not in self._tried and block not in under_way and self._left(runs):
                yield block

    def _left(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        return [run for run in runs if run.id not in self._done.good]

    def _site_of(self, block: int) -> str:
        if block in self._places:
            return self._places[block]
        if block not in self._dealt:
            self._dealt[block] = site_of_block(self._plan, list(self._sites), block)
        return self._dealt[block]

    def _waiting(self) -> bool:
        """Whether a site is only being given time."""
        last = last_block(self._plan, self._decided, choice_of(self._plan, self._done))
        return next(self._open(last), None) is not None

    def _submit(self, name: str, site: _Site, block: int, choice: Any) -> None:
        runs, key = self._blocks[block], f"block-{block}-{uuid4().hex[:8]}"
        spool = self._destination.staging / key
        spool.mkdir()
        task = BlockTask(
            name=key,
            topic=self._topic,
            plan=self._plan.model_copy(update={"runs": tuple(runs)}),
            block=block,
            store=str(self._fleet.store),
            store_id=self._destination.store_id,
            spool=str(spool) if self._fleet.crew.shares_disk else None,
            done=StudyState(
                good=frozenset(run.id for run in runs if run.id in self._done.good),
                attempts=Counter({run.id: self._done.attempts[run.id] for run in runs}),
            ),
            choice=choice,
            references=tuple(self._first.get(name, {}).values()) if site.fresh else None,
        )
        future = self._fleet.crew.client.submit(
            make_block, task, key=task.name, resources={resource_of(name): 1}, pure=False, retries=0
        )
        site.under_way, site.fresh = _UnderWay(task, spool, future), False
        self._under_way[key] = (name, spool)
        future.add_done_callback(lambda _: self._deliver("over", key))

    # What comes in

    def _heard(self, message: tuple[float, Mapping[str, Any]]) -> None:
        """In the thread of Dask's client."""
        _, body = message
        if body["what"] == "kept":
            self._deliver("kept", body["task"])
        else:
            self._messages.put((body["what"], body["task"], body.get("event")))

    def _deliver(self, what: str, task: str) -> None:
        """Have a message come after what it tells of. In any thread."""
        if (found := self._under_way.get(task)) is None:
            return
        name, spool = found
        if self._fleet.crew.shares_disk:
            self._messages.put((what, task, None))
            return

        def brought() -> None:
            try:
                self._fleet.crew.bring(name, task, spool)
            except Exception as error:  # noqa: BLE001 - the coordinator's to judge
                self._messages.put(("failed", task, error))
            else:
                self._messages.put((what, task, None))

        with suppress(RuntimeError):  # the study is over
            self._couriers[name].submit(brought)

    def _next(self) -> Iterator[Kept]:
        with self._fleet.interrupts.allowed():
            try:
                what, task, event = self._messages.get(timeout=_LOOK_S)
            except queue.Empty:
                what, task, event = "", "", None
        name = self._worker_on(task)
        if name is not None:
            if what == "event":
                self._observer(FromSite(name, pickle.loads(event)))  # noqa: S301 - from a process that we trust with more
            else:
                yield from self._taken(name)
            if what == "over":
                self._over(name)
            elif what == "failed":
                self._strike(name, str(event))
        for lost, why in self._fleet.crew.lost().items():
            yield from self._taken(lost)
            self._strike(lost, why)

    def _worker_on(self, task: str) -> str | None:
        return next(
            (n for n, site in self._sites.items() if site.under_way and site.under_way.task.name == task), None
        )

    def _taken(self, name: str) -> Iterator[Kept]:
        """All that a site has handed over and that was not taken yet."""
        site = self._sites.get(name)
        if site is None or site.under_way is None:
            return
        for path, kept in handed_over(site.under_way.spool):
            path.unlink()
            if any(self._known(record) for record in kept):
                continue
            for record in kept:
                if (source := path.parent / staged_name(record)).exists():
                    source.rename(self._destination.staging / staged_name(record))
            yield self._noted(name, kept)
            for record in kept:
                self._observer(RunEnded(record))

    def _known(self, record: RunRecord) -> bool:
        """Whether it is there already: a scheduler of others gives a lost worker's task to the next."""
        return record.run_id in self._done.good or record.attempt <= self._done.attempts[record.run_id]

    def _noted(self, name: str, kept: Kept) -> Kept:
        self._done = self._done.plus(*kept)
        for record in kept:
            if record.outcome.ok:
                self._places.setdefault(record.block, name)
                self._first.setdefault(name, {}).setdefault(record.arm, record)
        self._decided = decision(self._plan, self._done)
        if self._decided.blocks > self._told_blocks:
            self._told_blocks = self._decided.blocks
            self._observer(BlockEnded(self._decided))
        return kept

    def _over(self, name: str) -> None:
        site = self._sites[name]
        if site.under_way is None:
            return
        under_way = site.under_way
        error = under_way.future.exception()
        if error is None:
            self._tried.add(under_way.task.block)
            site.strikes = 0
            self._forget(site)
        elif type(error).__name__ == "KilledWorker":
            self._forget(site)  # `lost` says why
        else:
            self._strike(name, str(error))

    def _forget(self, site: _Site) -> None:
        if site.under_way is not None:
            site.under_way.future.cancel()
            site.under_way.future.release()
            self._under_way.pop(site.under_way.task.name, None)
            shutil.rmtree(site.under_way.spool, ignore_errors=True)
            site.under_way = None

    def _strike(self, name: str, why: str) -> None:
        """A site failed; what it had under way is begun anew, and after three times in a row without this site."""
        site = self._sites.get(name)
        if site is None:
            return
        self._forget(site)
        site.strikes, site.fresh = site.strikes + 1, True
        site.not_before = self._fleet.clock.monotonic() + self._fleet.patience_s * site.strikes
        if site.strikes < STRIKES:
            self._tell_standing(name, site, Standing.FAILING, why)
            self._observer(Notice(f"{name} failed ({site.strikes} of {STRIKES} times in a row): {why}"))
            return
        del self._sites[name]
        self._tell_standing(name, site, Standing.SET_ASIDE, why)
        self._dealt.clear()
        self._fleet.crew.dismiss(name)
        self._observer(Notice(f"{name} is set aside after {STRIKES} failures in a row: {why}"))
        if not self._sites:
            raise EnvironmentLacks(
                f"no site is left; the last one, {name}, was set aside: {why}",
                hint="mend the sites, then give the same command: it goes on from here",
            )

    def _given_up(self) -> Iterator[Kept]:
        """Runs of blocks that were begun on a site which is not to be had: they cannot be made elsewhere."""
        for block, name in list(self._places.items()):
            if name in self._sites or block in self._tried:
                continue
            left = self._left(self._blocks.get(block, []))
            self._tried.add(block)
            if left and block <= max(self._decided.blocks + 1, last_block(self._plan, self._decided, None)):
                why = f"the site {name}, on which block {block} was begun, is not to be had"
                kept = tuple(
                    unmade_record(self._plan, run, self._done.attempts[run.id] + 1, name, why) for run in left
                )
                yield self._noted(name, kept)
                for record in kept:
                    self._observer(RunEnded(record))


def _first_runs(made: Sequence[RunRecord]) -> dict[str, dict[str, RunRecord]]:
    """Site → arm → its first good run there."""
    found: dict[str, dict[str, RunRecord]] = {}
    for record in sorted(made, key=lambda one: (one.index, one.attempt)):
        if record.outcome.ok and record.site is not None:
            found.setdefault(record.site, {}).setdefault(record.arm, record)
    return found
