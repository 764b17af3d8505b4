"""Calibrating for a while: study after study, each gone on with, run and stored as any study is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tare.calibrate.archive import Archive, Place
from tare.calibrate.outcome import finished
from tare.calibrate.summary import Identity, Summary
from tare.errors import StoreError
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.run.clock import Clock, Deadline
from tare.run.events import Observer
from tare.run.execute import Destination, execute
from tare.run.machine import Machine
from tare.run.parity.references import References, until_refused
from tare.run.resume import StudyState
from tare.store import open_store, resume_store


def next_place(archive: Archive, identity: Identity, kinds: Sequence[str]) -> Place:
    """Of these kinds, in their order where they are even. Numbers, and so seeds, go on from what is stored."""
    places = [place for place in archive.places(identity) if place.kind in kinds]
    for place in places:
        if archive.studied(place) is None and _same_plan(archive, place):
            return place
    last = {kind: max((place.number for place in places if place.kind == kind), default=0) for kind in kinds}
    kind = min(kinds, key=lambda each: last[each])
    return archive.place(identity, kind, last[kind] + 1)


def _same_plan(archive: Archive, place: Place) -> bool:
    """Whether this tare would make the same runs: one that an older one left unfinished is left as it is."""
    try:
        begun = open_store(place.path).plan.digest
    except StoreError:
        return not (place.path / "store.sqlite").exists()
    return begun == expand(archive.kinds[place.kind].make(place.number)).digest


MachineFor = Callable[[Plan, References], Machine]
"""The machine with all that a plan takes, and the runs that later ones are held against."""
Watch = Callable[[Place, Plan, StudyState], AbstractContextManager[Observer]]
"""An observer for as long as a study runs."""


@dataclass(frozen=True)
class Session:
    """What a calibration works with. `kinds`: which of the archive's take turns."""

    archive: Archive
    identity: Identity
    kinds: Sequence[str]
    machine: MachineFor
    watch: Watch
    clock: Clock


def calibrate(session: Session, minutes: float | None, studies: int | None = None) -> Summary:
    """Run studies until the time is up, or so many are finished; returns all that is known then.

    The run under way when the time is up is finished, and its study gone on with by the next call. Whatever ends
    this, a signal included, no finished run is lost. The figures are kept after every study.
    """
    deadline = None if minutes is None else Deadline(session.clock, 60 * minutes)
    summary = session.archive.summarise(session.identity)
    if summary.effort.studies:
        session.archive.keep(summary)  # another version may have read other figures off the same stores
    made = 0
    while (studies is None or made < studies) and not (deadline and deadline.passed):
        place = next_place(session.archive, session.identity, session.kinds)
        made += _study(session, place, deadline)
        summary = session.archive.summarise(session.identity)
        session.archive.keep(summary)
    return summary


def _study(session: Session, place: Place, deadline: Deadline | None) -> bool:
    """One study, up to the deadline; whether it is finished."""
    plan = expand(session.archive.kinds[place.kind].make(place.number))
    place.path.parent.mkdir(parents=True, exist_ok=True)
    with resume_store(place.path, plan) as writer:
        done = StudyState.from_records(writer.records())
        machine = session.machine(plan, References(writer.records()))
        destination = Destination(writer.id, done, writer.staging)
        with session.watch(place, plan, done) as observer:
            for kept in until_refused(execute(plan, machine, destination, observer), observer):
                writer.commit_all(kept)
                done = done.plus(*kept)
                if deadline and deadline.passed:
                    break
        return finished(plan, done)
