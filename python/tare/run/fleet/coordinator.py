"""A study on several sites: plan → records, as blocks come in from all of them at once."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tare.errors import StudyError
from tare.plan.model import Plan
from tare.run.events import Observer, RunEnded
from tare.run.execute import Destination, Kept
from tare.run.fleet.board import Board
from tare.run.fleet.dispatcher import Dispatcher, Fleet, Over, Told
from tare.run.record import RunRecord
from tare.study.protocol_spec import FixedSpec


def execute_on(
    fleet: Fleet, plan: Plan, destination: Destination, made: Sequence[RunRecord], observer: Observer
) -> Iterator[Kept]:
    """Yield records as they come in, from blocks on all sites at once; the caller commits each before the next.

    `made`: the records that the store has. All arms of a block are made on one site. What came in while the caller
    was committing is yielded as one. A site that fails three times in a row is set aside: blocks that it has no
    good run of go to others; of those that it has, each run that is left gets a failed attempt that names the
    reason. Raises `EnvironmentLacks` when no site is left, `Interrupted` between or within runs, and `StudyError`
    for a plan whose runs have to follow each other on one machine.
    """
    try:
        refuse_one_order(plan, made)
        dispatcher = Dispatcher(fleet, plan, destination, Board(plan, destination.done, made, fleet.sites))
        with dispatcher.at_work():
            over: Over | None = None
            while over is None:
                events = _waited_for(fleet, dispatcher)
                kept = tuple(record for each in events if isinstance(each, tuple) for record in each)
                if kept:
                    yield kept
                    dispatcher.committed(len(kept))
                over = _passed_on(events, observer)
        if over.error is not None:
            raise over.error
    finally:
        fleet.crew.close()


def _waited_for(fleet: Fleet, dispatcher: Dispatcher) -> list[Told]:
    """What the dispatcher reports next, and all that it has reported since."""
    events: list[Told] = []
    if dispatcher.events.empty():  # else it is taken before an interrupt ends this: runs that are finished stay
        with fleet.interrupts.allowed():
            events.append(dispatcher.events.get())
    with suppress(queue.Empty):
        while True:
            events.append(dispatcher.events.get_nowait())
    return events


def _passed_on(events: Sequence[Told], observer: Observer) -> Over | None:
    """Tell the observer in order, of records now that they are committed."""
    for each in events:
        if isinstance(each, Over):
            return each
        if isinstance(each, tuple):
            for record in each:
                observer(RunEnded(record))
        else:
            observer(each)
    return None


def refuse_one_order(plan: Plan, made: Sequence[RunRecord] = ()) -> None:
    """Raise `StudyError` for a plan that cannot be made on several sites."""
    protocol = plan.study.protocol
    if isinstance(protocol, FixedSpec) and protocol.sequence == "together":
        what = "each arm's runs follow each other (protocol.sequence: together), which needs one site"
        raise StudyError(what, hint="choose a site by --site NAME")
    if any(record.outcome.ok and record.site is None for record in made):
        what = "the store has runs that were made on this machine only"
        raise StudyError(what, hint="resume without --sites, or use another store with --store")
