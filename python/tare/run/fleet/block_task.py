"""A block as a task: what a site's process is given, and how it makes the runs and hands them over.

Records and raw files go through a directory of the store's staging area, never through the scheduler: it is told
only that there is something.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tare.errors import EnvironmentLacks, RunFailed
from tare.plan.model import Plan
from tare.protocols.pilot import Choice
from tare.run.attempt.context import Images
from tare.run.events import Event, RunEnded
from tare.run.execute import Destination, Kept, execute_block, place_of, prepare
from tare.run.interrupts import Interrupts
from tare.run.machine import Machine
from tare.run.parity.references import References
from tare.run.record import RunRecord
from tare.run.resume import StudyState
from tare.sites.file import SiteSpec

Machines = Callable[[SiteSpec, Plan, Path, Interrupts], AbstractContextManager[Machine]]
"""Site, plan, store and signals → the site as a machine, for as long as it is connected."""
Tell = Callable[[Mapping[str, Any]], None]
"""Has a message of a few hundred bytes brought to tare."""
KEPT = "kept-*.json"
_ANSWER_S = 60.0


@dataclass(frozen=True)
class BlockTask:
    """A block to be made. `plan`: with the runs of this block alone; `done`: what was made of them."""

    name: str
    topic: str
    plan: Plan
    block: int
    store: str
    store_id: str
    spool: str
    """Directory of this task, on the machine that tare runs on."""
    done: StudyState
    choice: Choice | None = None
    references: tuple[RunRecord, ...] | None = None
    """Good runs of the site that later ones are held against; `None`: those that its process knows."""


class Post:
    """A site as its process knows it: connected at the first block, and anew after anything that went wrong."""

    def __init__(self, spec: SiteSpec, machines: Machines, interrupts: Interrupts) -> None:
        self.spec = spec
        self._machines, self._interrupts = machines, interrupts
        self._stack = ExitStack()
        self._machine: Machine | None = None
        self._plan_digest = ""
        self._images: dict[tuple[str, str], Images] = {}

    def make(self, task: BlockTask, tell: Tell) -> int:
        """Make what remains of a block. Returns how many times it kept something.

        Raises whatever keeps it from going on; what was kept before stays kept.
        """
        spool = Path(task.spool)
        spool.mkdir(parents=True, exist_ok=True)

        def observer(event: Event) -> None:
            if not isinstance(event, RunEnded):  # that is said when the run is committed
                tell({"what": "event", "task": task.name, "event": pickle.dumps(event)})

        try:
            machine = self._ready(task)
            destination = Destination(task.store_id, task.done, spool)
            self._prepare(task, machine, destination, observer)
            times = 0
            for kept in execute_block(task.plan, machine, destination, observer, self._images, task.choice):
                times += 1
                _hand_over(spool, times, kept)
                tell({"what": "kept", "task": task.name})
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
        """The images and the data of arms that this site has not run yet."""
        new = [run for run in task.plan.runs if place_of(machine, run) not in self._images]
        if new:
            self._images |= prepare(task.plan, machine, destination, observer, new)


def refuse_lost(machine: Machine) -> None:
    """Raise `EnvironmentLacks` where a host of the site does not answer: all its runs would fail."""
    for host in machine.site.hosts:
        try:
            host.run(["true"], timeout_s=_ANSWER_S)
        except (RunFailed, OSError) as error:
            raise EnvironmentLacks(f"{host.name} stopped answering: {error}") from error


def _hand_over(spool: Path, times: int, kept: Kept) -> None:
    """Write records down as one, whole or not at all; their raw files lie beside them."""
    target = spool / KEPT.replace("*", f"{times:05d}")
    scratch = target.with_suffix(".part")
    scratch.write_text(json.dumps([record.model_dump_json() for record in kept]))
    scratch.rename(target)


def handed_over(spool: Path) -> list[tuple[Path, Kept]]:
    """What a task has kept so far and nobody has taken yet, in its order."""
    found = sorted(spool.glob(KEPT))
    return [
        (path, tuple(RunRecord.model_validate_json(one) for one in json.loads(path.read_text()))) for path in found
    ]


def make_block(task: BlockTask) -> int:
    """What Dask calls in the process of a site."""
    from distributed import get_worker  # slow to import, and most commands do without

    worker = get_worker()
    post: Post = worker.extensions["site"]
    return post.make(task, lambda message: worker.log_event(task.topic, dict(message)))
