"""The pilot of a rotation: one generation that no record is kept of, which chooses the lengths of turns."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tare.errors import EnvironmentLacks
from tare.protocols.turn_pilot import LENGTHS_MS, Trial, choose
from tare.record.measurement import TurnCounts
from tare.record.pilot import TurnChoice
from tare.record.run_record import RunRecord
from tare.run.attempt.job import Job
from tare.run.machine import Machine
from tare.run.rotation.attempt import arms_of, lengths_of, take_turns
from tare.run.rotation.schedule import Schedule
from tare.study.model import Study
from tare.study.protocol_spec import RotateSpec

_NS_PER_MS = 1e6


def choose_turns(jobs: Sequence[Job], machine: Machine, spec: RotateSpec) -> TurnChoice | str:
    """Choose the lengths of a study's turns, or return why a run of the pilot failed.

    Raises `EnvironmentLacks` if these arms cannot take turns on this machine.
    """
    apart = [replace(job, staging=job.staging.with_name(f"{job.staging.name}-pilot")) for job in jobs]
    parameters, began_s = lengths_of(jobs, machine), machine.clock.monotonic()
    schedule = Schedule.of_pilot(parameters, arms_of(jobs), jobs[0].run.seed)
    try:
        records = take_turns(apart, machine, lambda _: None, schedule)
    finally:
        for job in apart:
            shutil.rmtree(job.staging, ignore_errors=True)
    failed = next((record for record in records if not record.outcome.ok), None)
    if failed is not None:
        return str(failed.outcome.reason)
    chosen = choose(
        trials_of(records, schedule),
        baselines_of(jobs[0].plan.study),
        start_s=max(0.0, machine.clock.monotonic() - began_s - schedule.seconds),
        most_s=parameters.measure_s,
        rounds=spec.rounds,
    )
    if isinstance(chosen, str):
        what = f"these arms cannot take turns on this machine: {chosen}"
        raise EnvironmentLacks(what, hint="use `interleave`, or set protocol.turn_ms and settle_ms")
    return chosen


def baselines_of(study: Study) -> dict[str, str]:
    """Return each arm beside the baselines with the one that it is compared with."""
    pairs = {arm.name: study.baseline_of(arm.name) for arm in study.arms}
    return {arm: baseline for arm, baseline in pairs.items() if arm != baseline}


def trials_of(records: Sequence[RunRecord], schedule: Schedule) -> list[Trial]:
    """Cut what was counted into the lengths that were tried."""
    turns = {
        record.arm: record.measurement.turns
        for record in records
        if record.measurement and record.measurement.turns
    }
    ended_ms = _ended_ms(turns, schedule)
    each = (len(schedule.order) - schedule.warm_up_rounds) // len(LENGTHS_MS)
    trials = []
    for place, length_ms in enumerate(LENGTHS_MS):
        part = slice(place * each, (place + 1) * each)
        counts = {arm: np.array((of_arm.slices or ())[part], dtype=float) for arm, of_arm in turns.items()}
        numbers = [number for arm in turns for number in schedule.measured(arm)[part]]
        starts_ms = {number: schedule.span(number).start_ns / _NS_PER_MS for number in numbers}
        late = [ended_ms[number - 1] - starts_ms[number] for number in numbers if number - 1 in ended_ms]
        trials.append(Trial(length_ms, counts, late))
    return trials


def _ended_ms(turns: Mapping[str, TurnCounts], schedule: Schedule) -> dict[int, float]:
    """Return when the last operation of each turn ended, by its number; clients count from their own first turn."""
    ended = {}
    for arm, of_arm in turns.items():
        numbers = schedule.measured(arm)
        zero_ms = schedule.span(numbers[0]).start_ns / _NS_PER_MS
        for number, last_s in zip(numbers, of_arm.last_s, strict=True):
            if last_s is not None:
                ended[number] = zero_ms + last_s * 1000
    return ended
