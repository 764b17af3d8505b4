"""Calibrate for a while: study after study, each resumed, run and stored as any other study."""

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
from tare.sites.layout import make_directory
from tare.store import open_store, resume_store


def next_place(archive: Archive, identity: Identity, kinds: Sequence[str]) -> Place:
    """Return the next study, of these kinds in turn. Numbers, and so seeds, continue from the stored ones."""
    places = [place for place in archive.places(identity) if place.kind in kinds]
    for place in places:
        if archive.studied(place) is None and _same_plan(archive, place):
            return place
    last = {kind: max((place.number for place in places if place.kind == kind), default=0) for kind in kinds}
    kind = min(kinds, key=lambda each: last[each])
    return archive.place(identity, kind, last[kind] + 1)


def _same_plan(archive: Archive, place: Place) -> bool:
    """Whether this tare would make the same runs; an unfinished study of an older tare is left as it is."""
    try:
        begun = open_store(place.path).plan.digest
    except StoreError:
        return not (place.path / "store.sqlite").exists()
    return begun == expand(archive.kinds[place.kind].make(place.number)).digest


MachineFor = Callable[[Plan, References], Machine]
"""Plan and reference runs → the machine for the plan."""
Watch = Callable[[Place, Plan, StudyState], AbstractContextManager[Observer]]
"""Returns an observer for the time that a study runs."""


@dataclass(frozen=True)
class Session:
    """What a calibration works with. `kinds`: the kinds of the archive that take turns."""

    archive: Archive
    identity: Identity
    kinds: Sequence[str]
    machine: MachineFor
    watch: Watch
    clock: Clock


def calibrate(session: Session, minutes: float | None, studies: int | None = None) -> Summary:
    """Run studies until the time is up or enough are finished; return the summary of all.

    A run in progress is finished when the time is up, and the next call resumes its study. Whatever ends this call,
    a signal included, no finished run is lost. The summary is stored after every study.
    """
    deadline = None if minutes is None else Deadline(session.clock, 60 * minutes)
    summary = session.archive.summarise(session.identity)
    if summary.effort.studies:
        session.archive.keep(summary)  # another version may have computed other figures from the same stores
    made = 0
    while (studies is None or made < studies) and not (deadline and deadline.passed):
        place = next_place(session.archive, session.identity, session.kinds)
        made += _study(session, place, deadline)
        summary = session.archive.summarise(session.identity)
        session.archive.keep(summary)
    return summary


def _study(session: Session, place: Place, deadline: Deadline | None) -> bool:
    """Run one study, up to the deadline. Returns whether it is finished."""
    plan = expand(session.archive.kinds[place.kind].make(place.number))
    make_directory(place.path.parent)
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
