"""Stages of one instance: successive attempts on the same server and data, with a record each.

Why they are runs of their own: docs/decisions/0015-stages-are-runs-on-one-instance.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tare.record.run_record import RunRecord
from tare.run.attempt.attempt import Attempt
from tare.run.attempt.job import Job
from tare.run.attempt.phases import Ready
from tare.run.attempt.raw_files import new_secrets
from tare.run.events import Observer
from tare.run.machine import Machine


def attempt_stages(jobs: Sequence[Job], machine: Machine, observer: Observer) -> tuple[RunRecord, ...]:
    """Attempt every stage in order: all are good, or none. Only an interruption leaves no records.

    The first stage owns server and data, so they end when every stage has been collected.
    """
    secrets = new_secrets(tls=jobs[0].arm.settings.sut.tls)
    stages = [Attempt(job, machine, observer, secrets=secrets) for job in jobs]
    try:
        with machine.interrupts.allowed():
            _drive(stages)
        for each in reversed(stages):
            each.collect()
        _all_or_none(stages)
    finally:
        for each in reversed(stages):
            each.tear_down()
    records = tuple(each.record() for each in stages)
    for record in records:
        machine.references.note(record)
    return records


def _drive(stages: Sequence[Attempt]) -> None:
    """Run the stages up to the cool-down of the last one; stop after the first that fails."""
    ready: Ready | None = None
    for each in stages:
        phases = each.phases
        ready = each.take(phases.make_ready if ready is None else partial(phases.take_over, ready))
        if ready is None:
            return
        each.take(partial(phases.conduct, ready))
        if not each.outcome.ok:
            return


def _all_or_none(stages: Sequence[Attempt]) -> None:
    """Void all stages if one failed: a stage counts only in a complete series, and the next attempt starts anew."""
    failed = next((each for each in stages if not each.outcome.ok), None)
    if failed is None:
        return
    why = f"{failed.job.run.arm}, a stage on the same server, failed: {failed.outcome.reason}"
    for each in stages:
        each.void(why)
