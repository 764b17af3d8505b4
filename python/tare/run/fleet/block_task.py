"""A block as a Dask task: what a site's process receives, and how it makes the runs and hands them over.

Records and raw files go through a directory in the store's staging area, never through the scheduler, which only
announces them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from tare.errors import EnvironmentLacks, RunFailed
from tare.plan.model import Plan
from tare.record.pilot import Choice
from tare.record.run_record import RunRecord
from tare.run.attempt.context import Images
from tare.run.events import Event, RunEnded
from tare.run.execute import Destination, execute_block, image_key, prepare
from tare.run.fleet.handover import hand_over
from tare.run.interrupts import Interrupts
from tare.run.machine import Machine
from tare.run.parity.references import References
from tare.run.resume import StudyState
from tare.sites.file import SiteSpec
from tare.version import __version__

Machines = Callable[[SiteSpec, Plan, Path, Interrupts], AbstractContextManager[Machine]]
"""Site, plan, store and signals → the connected site as a machine."""
Send = Callable[[Mapping[str, Any]], None]
"""Sends a message of a few hundred bytes to tare."""
_ANSWER_S = 60.0


@dataclass(frozen=True)
class BlockTask:
    """A block to make. `plan`: with the runs of this block only; `done`: their state so far."""

    name: str
    topic: str
    plan: Plan
    block: int
    store: str
    store_id: str
    spool: str | None
    """Directory of this task if the worker shares a disk with tare; `None`: in the worker's outbox."""
    done: StudyState
    choice: Choice | None = None
    references: tuple[RunRecord, ...] | None = None
    """Good runs of the site that later ones are compared with; `None`: those that its process knows."""
    tare: str = __version__
    """Version of tare that the task comes from."""


class Maker(Protocol):
    """Makes blocks on a site."""

    def make(self, task: BlockTask, send: Send) -> int:
        """Make what remains of a block. Returns how many times records were handed over.

        Raises whatever prevents it from continuing; records handed over before remain valid.
        """
        ...

    def leave(self) -> None:
        """Disconnect from the site; the next block connects anew."""
        ...


class ConnectedMaker:
    """A site in its own process: connected at the first block, and anew after any failure."""

    def __init__(self, spec: SiteSpec, machines: Machines, interrupts: Interrupts) -> None:
        self.spec = spec
        self._machines, self._interrupts = machines, interrupts
        self._stack = ExitStack()
        self._machine: Machine | None = None
        self._plan_digest = ""
        self._images: dict[tuple[str, str], Images] = {}

    def make(self, task: BlockTask, send: Send) -> int:
        """Connect where needed, and make what remains of the block."""
        spool = spool_of(task)

        def observer(event: Event) -> None:
            if not isinstance(event, RunEnded):  # reported when the run is committed
                send({"what": "event", "task": task.name, "event": pickle.dumps(event)})

        try:
            machine = self._ready(task)
            destination = Destination(task.store_id, task.done, spool)
            self._prepare(task, machine, destination, observer)
            times = 0
            for kept in execute_block(task.plan, machine, destination, observer, self._images, task.choice):
                times += 1
                hand_over(spool, times, kept)
                send({"what": "kept", "task": task.name})
                if not all(record.outcome.ok for record in kept):
                    refuse_lost(machine)
        except BaseException:
            self.leave()
            raise
        return times

    def leave(self) -> None:
        """Disconnect; the next block connects anew."""
        self._machine, self._images = None, {}
        stack, self._stack = self._stack, ExitStack()
        stack.close()

    def _ready(self, task: BlockTask) -> Machine:
        if self._machine is not None and self._plan_digest != task.plan.digest:
            self.leave()
        if self._machine is None:
            found = self._machines(self.spec, task.plan, Path(task.store), self._interrupts)
            self._machine = self._stack.enter_context(found)
            self._plan_digest = task.plan.digest
        if task.references is not None:
            self._machine = replace(self._machine, references=References(task.references))
        return self._machine

    def _prepare(
        self, task: BlockTask, machine: Machine, destination: Destination, observer: Callable[[Event], None]
    ) -> None:
        """Prepare images and data of arms that this site has not run yet."""
        new = [run for run in task.plan.runs if image_key(machine, run) not in self._images]
        if new:
            self._images |= prepare(task.plan, machine, destination, observer, new)


def refuse_lost(machine: Machine) -> None:
    """Raise `EnvironmentLacks` if a host of the site does not answer: all its runs would fail."""
    for host in machine.site.hosts:
        try:
            host.run(["true"], timeout_s=_ANSWER_S)
        except (RunFailed, OSError) as error:
            raise EnvironmentLacks(f"{host.name} stopped answering: {error}") from error


def spool_of(task: BlockTask) -> Path:
    """Return the directory that a task hands over in, and create it if needed."""
    assert task.spool is not None  # noqa: S101 - `make_block` gives it one
    spool = Path(task.spool)
    spool.mkdir(parents=True, exist_ok=True)
    return spool


def make_block(task: BlockTask) -> int:
    """Make a block; Dask calls this in the process of a site."""
    from distributed import get_worker  # slow to import, and most commands do without

    worker = get_worker()
    maker: Maker = worker.extensions["site"]
    if task.tare != __version__:
        what = f"the worker is tare {__version__}, the study is run by tare {task.tare}"
        raise EnvironmentLacks(what, hint="install one version on both")

    def send(message: Mapping[str, Any]) -> None:
        worker.log_event(task.topic, dict(message))

    if task.spool is not None:
        return maker.make(task, send)
    with worker.extensions["outbox"](task.name) as place:
        return maker.make(replace(task, spool=str(place)), send)
