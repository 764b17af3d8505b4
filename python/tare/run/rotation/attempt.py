"""The attempts of one generation: prepared one after the other, then driven in turns, each in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from tare.protocols.rotate import turns_a_round
from tare.record.run_record import RunRecord
from tare.run.attempt.attempt import Attempt
from tare.run.attempt.context import parameters_of
from tare.run.attempt.job import Job
from tare.run.duet.attempt import drive, partner_failed, serial
from tare.run.duet.barrier import BreakableClock
from tare.run.events import Observer
from tare.run.machine import Machine
from tare.run.parity.compare import as_sentence, differences
from tare.run.parity.references import known_variables_of
from tare.run.rotation.pace import Meeting, RotationPace, SeldomClock
from tare.run.rotation.schedule import Schedule
from tare.study.protocol_spec import RotateSpec
from tare.workloads import Parameters
from tare.workloads.turns import TURN_TAKERS


def attempt_generation(
    jobs: Sequence[Job], machine: Machine, observer: Observer, spec: RotateSpec
) -> tuple[RunRecord, ...]:
    """Attempt all runs of a block: all are good, or none. Only an interruption leaves no records."""
    seed = jobs[0].run.seed
    study, arms = jobs[0].plan.study, arms_of(jobs)
    turns = turns_a_round({arm: study.baseline_of(arm) for arm in arms})
    records = take_turns(jobs, machine, observer, Schedule.of(spec, lengths_of(jobs, machine), turns, seed))
    for record in records:
        machine.references.note(record)
    return records


def take_turns(
    jobs: Sequence[Job], machine: Machine, observer: Observer, schedule: Schedule
) -> tuple[RunRecord, ...]:
    """Attempt these runs on one schedule: all are good, or none."""
    meeting, in_turn = Meeting(len(jobs)), serial(observer)
    clock = SeldomClock(BreakableClock(machine.clock, meeting), meeting)
    patient = replace(machine, clock=clock)
    attempts = [Attempt(job, patient, in_turn, _pace(job, meeting, schedule, clock, jobs)) for job in jobs]
    try:
        with machine.interrupts.allowed():
            drive(attempts, meeting, lambda threads, _: _wait(threads))
        for each in attempts:
            each.took_turns(schedule.described(each.job.run.arm, meeting.base_ns))
            each.collect()
        _all_or_none(attempts, machine)
    finally:
        for each in attempts:
            each.tear_down()
    return tuple(each.record() for each in attempts)


def lengths_of(jobs: Sequence[Job], machine: Machine) -> Parameters:
    """Return the parameters of any arm: all have the same lengths of warm-up and measure phase."""
    settings = jobs[0].arm.settings
    return parameters_of(machine.workloads[settings.workload_name], settings)


def arms_of(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Return the arms by name: the order of turns is the plan's, and not that in which the servers start."""
    return tuple(sorted(job.run.arm for job in jobs))


def _pace(job: Job, meeting: Meeting, schedule: Schedule, clock: SeldomClock, jobs: Sequence[Job]) -> RotationPace:
    taker = TURN_TAKERS[job.arm.settings.workload_name]
    return RotationPace(meeting, schedule, job.run.arm, taker, clock.clock, first=job is jobs[0])


def _wait(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)  # an interruption is raised between two waits


def _all_or_none(attempts: Sequence[Attempt], machine: Machine) -> None:
    """Void a generation of which a run failed; refuse runs that are not comparable with the first."""
    first, *others = attempts
    for other in others:
        if first.outcome.ok and other.outcome.ok:
            study, database = first.job.plan.study, first.job.arm.settings.sut.database
            known = known_variables_of(machine.databases, database)
            if unlike := differences(study, first.record(), other.record(), known):
                other.refuse(as_sentence(unlike))
    failed = next((each for each in attempts if not each.outcome.ok), None)
    if failed is not None:
        for each in attempts:
            each.void(partner_failed(failed))
