"""The thread that assigns blocks to idle sites and passes their results to the study's thread.

It does not wait for commits: sites continue while records are being committed.
"""

from __future__ import annotations

import pickle
import queue
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future as Delivered
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakSet

from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.run.attempt.job import unmade_record
from tare.run.clock import Clock, SystemClock
from tare.run.events import BlockEnded, Event, FromSite, MeasureChosen, Notice, SiteStands, Standing
from tare.run.execute import Destination, Kept
from tare.run.fleet.block_schedule import BlockSchedule
from tare.run.fleet.block_task import BlockTask, make_block
from tare.run.fleet.handover import handed_over, staged_name
from tare.run.fleet.site_process import resource_of
from tare.run.fleet.workers import Workers
from tare.run.interrupts import Interrupts

if TYPE_CHECKING:
    from distributed import Future

STRIKES = 3
"""Failures in a row after which a site is set aside."""
PATIENCE_S = 5.0
"""Seconds before a failed site is tried again, for each failure in a row."""
_LOOK_S = 0.5
"""Seconds between checks of whether site processes live and whether failed sites may be tried again."""
_BLOCKS_AHEAD = 2
"""Blocks per site that may wait for their commit before no further block starts."""
_END_S = 60.0
_TIDY_S = 5.0
"""How long the end waits for deliveries that came too late, whose files are removed."""


@dataclass(frozen=True)
class Fleet:
    """Sites by name, their workers, and the store of the study."""

    sites: Sequence[str]
    workers: Workers
    store: Path
    interrupts: Interrupts = field(default_factory=Interrupts)
    clock: Clock = field(default_factory=SystemClock)
    patience_s: float = PATIENCE_S


@dataclass(frozen=True)
class Over:
    """The end: nothing is left to do, or an error prevents the study from continuing."""

    error: BaseException | None = None


Report = Event | Kept | Over
"""What the study's thread receives, in order; records are in the staging area, to be committed."""


@dataclass
class _Submitted:
    """A submitted block. `spool`: tare's own directory for the task."""

    task: BlockTask
    spool: Path
    future: Future[int]


@dataclass
class _Site:
    """State of a site: failures in a row, when to try it again, and whether its process needs the references."""

    strikes: int = 0
    not_before: float = 0.0
    fresh: bool = True
    submitted: _Submitted | None = None
    announced: Standing | None = None


class Dispatcher:
    """Dispatches the blocks of one study on one fleet."""

    def __init__(self, fleet: Fleet, plan: Plan, destination: Destination, schedule: BlockSchedule) -> None:
        self.events: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._fleet, self._plan, self._destination, self._schedule = fleet, plan, destination, schedule
        self._sites = {name: _Site() for name in fleet.sites}
        self._tasks: dict[str, tuple[str, Path]] = {}
        """Task in progress → its site and spool; also read by the threads that fetch files."""
        self._messages: queue.SimpleQueue[tuple[str, str, Any]] = queue.SimpleQueue()
        self._topic = f"tare-{uuid4().hex}"
        self._couriers = {name: ThreadPoolExecutor(1, f"from-{name}") for name in fleet.sites}
        """One thread for each site, so that a long delivery delays no other site, and messages stay in order."""
        self._deliveries: WeakSet[Delivered[None]] = WeakSet()
        self._to_commit, self._commits_lock = 0, threading.Lock()
        self._most_to_commit = _BLOCKS_AHEAD * len(fleet.sites) * max(1, len(plan.study.arms))
        self._reported_blocks, self._chosen, self._ended = 0, False, False
        self._looked_at = 0.0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Dispatch blocks while the `with` statement lasts."""
        thread = threading.Thread(target=self._work, name="dispatcher", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended = True
            self._messages.put(("end", "", None))
            thread.join(_END_S)
            for courier in self._couriers.values():
                courier.shutdown(wait=False, cancel_futures=True)
            wait(list(self._deliveries), timeout=_TIDY_S)

    def committed(self, records: int) -> None:
        """Report that this many of the announced records are committed. Called in any thread."""
        with self._commits_lock:
            self._to_commit -= records
        self._messages.put(("committed", "", None))

    def _work(self) -> None:
        try:
            self._dispatch()
        except BaseException as error:  # noqa: BLE001 - raised in the study's thread
            self.events.put(Over(error))
        else:
            self.events.put(Over())

    def _dispatch(self) -> None:
        self._fleet.workers.client.subscribe_topic(self._topic, self._receive)
        while not self._ended:
            self._give_up_orphaned()
            self._start_blocks()
            self._announce_states()
            submitted = self._blocks_in_progress()
            if not submitted and not self._schedule.can_start(submitted):
                break
            self._take_next()
        self.events.put(BlockEnded(self._schedule.decided))

    # Starting blocks

    def _start_blocks(self) -> None:
        now = self._fleet.clock.monotonic()
        if self._schedule.choice is not None and not self._chosen:
            self._chosen = True
            self.events.put(MeasureChosen(self._schedule.choice))
        if self._to_commit > self._most_to_commit:
            return
        idle = {
            name
            for name, site in self._sites.items()
            if site.submitted is None and site.not_before <= now and self._fleet.workers.ready(name)
        }
        for name, block in list(self._schedule.next_blocks(idle, self._blocks_in_progress())) if idle else ():
            self._submit(name, self._sites[name], block)

    def _blocks_in_progress(self) -> set[int]:
        return {site.submitted.task.block for site in self._sites.values() if site.submitted}

    def _submit(self, name: str, site: _Site, block: int) -> None:
        key = f"block-{block}-{uuid4().hex[:8]}"
        spool = self._destination.staging / key
        spool.mkdir()
        plan, done = self._schedule.task_of(block)
        task = BlockTask(
            name=key,
            topic=self._topic,
            plan=plan,
            block=block,
            store=str(self._fleet.store),
            store_id=self._destination.store_id,
            spool=str(spool) if self._fleet.workers.shares_disk else None,
            done=done,
            choice=self._schedule.choice,
            references=self._schedule.references_on(name) if site.fresh else None,
        )
        future = self._fleet.workers.client.submit(
            make_block, task, key=task.name, resources={resource_of(name): 1}, pure=False, retries=0
        )
        site.submitted, site.fresh = _Submitted(task, spool, future), False
        self._tasks[key] = (name, spool)
        future.add_done_callback(lambda _: self._deliver("over", key))

    def _announce_states(self) -> None:
        for name, site in self._sites.items():
            if site.submitted is not None:
                self._announce_state(name, site, Standing.AT_WORK)
            elif not self._fleet.workers.ready(name):
                self._announce_state(name, site, Standing.AWAY)
            elif not site.strikes:
                self._announce_state(name, site, Standing.IDLE)

    def _announce_state(self, name: str, site: _Site, standing: Standing, why: str = "") -> None:
        if site.announced is not standing:
            site.announced = standing
            self.events.put(SiteStands(name, standing, why))

    # Incoming messages

    def _receive(self, message: tuple[float, Mapping[str, Any]]) -> None:
        """Receive a message, in the thread of Dask's client."""
        _, body = message
        if body["what"] == "kept":
            self._deliver("kept", body["task"])
        else:
            self._messages.put((body["what"], body["task"], body.get("event")))

    def _deliver(self, what: str, task: str) -> None:
        """Pass a message on once its files have arrived. Called in any thread."""
        if (found := self._tasks.get(task)) is None:
            return
        name, spool = found
        if self._fleet.workers.shares_disk:
            self._messages.put((what, task, None))
            return

        def brought() -> None:
            try:
                self._fleet.workers.bring(name, task, spool)
            except Exception as error:  # noqa: BLE001 - the dispatcher's thread handles it
                self._messages.put(("failed", task, error))
            else:
                self._messages.put((what, task, None))
            finally:
                if task not in self._tasks:  # given up meanwhile: files may have come after its spool was removed
                    shutil.rmtree(spool, ignore_errors=True)

        with suppress(RuntimeError):  # the study is over
            self._deliveries.add(self._couriers[name].submit(brought))

    def _take_next(self) -> None:
        """Wait for a message, then handle all that are there."""
        with suppress(queue.Empty):
            self._take(*self._messages.get(timeout=_LOOK_S))
            while True:
                self._take(*self._messages.get_nowait())
        if time.monotonic() - self._looked_at < _LOOK_S:
            return
        self._looked_at = time.monotonic()
        for lost, why in self._fleet.workers.lost().items():
            self._take_over_from(lost)
            self._strike(lost, why)

    def _take(self, what: str, task: str, content: Any) -> None:
        name, _ = self._tasks.get(task, (None, None))
        if name is None:
            return
        if what == "event":
            self.events.put(FromSite(name, pickle.loads(content)))  # noqa: S301 - from a process that we trust with more
        else:
            self._take_over_from(name)
        if what == "over":
            self._over(name)
        elif what == "failed":
            self._strike(name, str(content))

    def _take_over_from(self, name: str) -> None:
        """Take over everything that a site has handed over."""
        site = self._sites.get(name)
        if site is None or site.submitted is None:
            return
        for path, kept in handed_over(site.submitted.spool):
            path.unlink()
            if any(self._schedule.known(record) for record in kept):
                continue
            for record in kept:
                if (source := path.parent / staged_name(record)).exists():
                    source.rename(self._destination.staging / staged_name(record))
            self._note(name, kept)

    def _note(self, name: str, kept: Kept) -> None:
        self._schedule.note(name, kept)
        with self._commits_lock:
            self._to_commit += len(kept)
        self.events.put(kept)
        if self._schedule.decided.blocks > self._reported_blocks:
            self._reported_blocks = self._schedule.decided.blocks
            self.events.put(BlockEnded(self._schedule.decided))

    def _over(self, name: str) -> None:
        site = self._sites[name]
        if site.submitted is None:
            return
        submitted = site.submitted
        # Ask the scheduler for more only if the task failed.
        error = None if submitted.future.status == "finished" else submitted.future.exception()
        if error is None:
            self._schedule.tried(submitted.task.block)
            site.strikes = 0
            self._forget(site)
        elif type(error).__name__ == "KilledWorker":
            self._forget(site)  # `lost` reports why
        else:
            self._strike(name, str(error))

    def _forget(self, site: _Site) -> None:
        if site.submitted is not None:
            if not site.submitted.future.done():
                site.submitted.future.cancel()
            site.submitted.future.release()
            self._tasks.pop(site.submitted.task.name, None)
            shutil.rmtree(site.submitted.spool, ignore_errors=True)
            site.submitted = None

    # Failures

    def _strike(self, name: str, why: str) -> None:
        """Count a failure of a site: its block starts anew, and after three in a row without this site."""
        site = self._sites.get(name)
        if site is None:
            return
        self._forget(site)
        site.strikes, site.fresh = site.strikes + 1, True
        site.not_before = self._fleet.clock.monotonic() + self._fleet.patience_s * site.strikes
        if site.strikes < STRIKES:
            self._announce_state(name, site, Standing.FAILING, why)
            self.events.put(Notice(f"{name} failed ({site.strikes} of {STRIKES} times in a row): {why}"))
            return
        del self._sites[name]
        self._announce_state(name, site, Standing.SET_ASIDE, why)
        self._schedule.remove_site(name)
        self._fleet.workers.dismiss(name)
        self.events.put(Notice(f"{name} is set aside after {STRIKES} failures in a row: {why}"))
        if not self._sites:
            raise EnvironmentLacks(
                f"no site is left; the last one, {name}, was set aside: {why}",
                hint="fix the sites, then repeat the command to resume",
            )

    def _give_up_orphaned(self) -> None:
        """Record failed attempts for blocks that started on an unavailable site: they cannot be made elsewhere."""
        for orphaned in self._schedule.orphaned():
            why = f"the site {orphaned.site}, which started block {orphaned.block}, is not available"
            attempts = self._schedule.done.attempts
            kept = tuple(
                unmade_record(self._plan, run, attempts[run.id] + 1, orphaned.site, why) for run in orphaned.runs
            )
            self._note(orphaned.site, kept)
