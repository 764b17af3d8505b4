"""A study on several sites: plan → records, as blocks arrive from all sites at once."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tare.errors import StudyError
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.run.events import Observer, RunEnded
from tare.run.execute import Destination, Kept
from tare.run.fleet.block_schedule import BlockSchedule
from tare.run.fleet.dispatcher import Dispatcher, Fleet, Over, Report
from tare.study.protocol_spec import FixedSpec


def execute_on(
    fleet: Fleet, plan: Plan, destination: Destination, made: Sequence[RunRecord], observer: Observer
) -> Iterator[Kept]:
    """Yield records of blocks on all sites as they arrive; the caller commits each batch before the next.

    `made`: the store's records. All arms of a block run on one site. What arrives during a commit is yielded as one
    batch. A site that fails three times in a row is set aside: its blocks without a good run move to other sites,
    and in its other blocks each remaining run gets a failed attempt that names the reason. Raises
    `EnvironmentLacks` when no site is left, `Interrupted` between or within runs, and `StudyError` for a plan whose
    runs must follow each other on one machine.
    """
    try:
        refuse_one_order(plan, made)
        dispatcher = Dispatcher(fleet, plan, destination, BlockSchedule(plan, destination.done, made, fleet.sites))
        with dispatcher.at_work():
            over: Over | None = None
            while over is None:
                events = _next_events(fleet, dispatcher)
                kept = tuple(record for each in events if isinstance(each, tuple) for record in each)
                if kept:
                    yield kept
                    dispatcher.committed(len(kept))
                over = _report(events, observer)
        if over.error is not None:
            raise over.error
    finally:
        fleet.workers.close()


def _next_events(fleet: Fleet, dispatcher: Dispatcher) -> list[Report]:
    """Wait for the dispatcher's next event, and return all events since then."""
    events: list[Report] = []
    if dispatcher.events.empty():  # else take it before an interrupt: finished runs are kept
        with fleet.interrupts.allowed():
            events.append(dispatcher.events.get())
    with suppress(queue.Empty):
        while True:
            events.append(dispatcher.events.get_nowait())
    return events


def _report(events: Sequence[Report], observer: Observer) -> Over | None:
    """Report events to the observer in order; records are committed by now."""
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
    """Raise `StudyError` for a plan that cannot run on several sites."""
    protocol = plan.study.protocol
    if isinstance(protocol, FixedSpec) and protocol.sequence == "together":
        what = "each arm's runs follow each other (protocol.sequence: together), which needs one site"
        raise StudyError(what, hint="choose a site by --site NAME")
    if any(record.outcome.ok and record.site is None for record in made):
        what = "the store has runs that were made on this machine only"
        raise StudyError(what, hint="resume without --sites, or use another store with --store")
