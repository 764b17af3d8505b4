"""One attempt at one run: provision → load → warm-up → measure → cool-down → collect → teardown."""

from __future__ import annotations

import traceback

from tare.databases import Secrets
from tare.errors import NotComparable, TareError
from tare.run.collect import collect, raw_names
from tare.run.credentials import new_secrets, redacted
from tare.run.events import Observer, PhaseStarted
from tare.run.machine import Machine
from tare.run.monitors import Monitors, trace_of
from tare.run.phases import Found, Job, Phases
from tare.run.record import Outcome, Phase, RunRecord
from tare.run.recording import record_of
from tare.run.saturation import with_saturation
from tare.run.stopwatch import Stopwatch
from tare.run.sut_io import with_sut_io
from tare.run.teardown import Teardown


def attempt(job: Job, machine: Machine, observer: Observer) -> RunRecord:
    """Make one attempt and tell of it, whatever came of it; only an interruption leaves without a record."""
    found, secrets, stops, teardown = Found(), new_secrets(), Teardown(), Teardown()
    watch = Stopwatch(machine.clock, lambda phase, s: observer(PhaseStarted(job.run, phase, s)))
    monitors, outcome = Monitors(machine), Outcome(ok=True)

    def take(steps: Teardown) -> None:
        found.notices += [redacted(problem, secrets) for problem in steps.run()]

    try:
        try:
            with machine.interrupts.allowed():
                Phases(job, machine, secrets, watch, found, stops, teardown, monitors).drive()
        except Exception as error:  # noqa: BLE001 - one run must not end a study of hours; the trace is kept
            outcome = _failure(error, watch.current, found, secrets)
        with watch.phase(Phase.COLLECT):
            take(stops)
            outcome = _collect(job, machine, secrets, found, outcome)
            outcome = _read(job, monitors, found, outcome)
    finally:
        with watch.phase(Phase.TEARDOWN):
            take(stops)
            take(teardown)
    record = record_of(job, found, watch.times, outcome)
    machine.references.note(record)
    return record


def _failure(error: Exception, phase: Phase | None, found: Found, secrets: Secrets) -> Outcome:
    told = str(error)
    if not isinstance(error, (TareError, OSError)):
        found.notes["traceback.txt"] = "".join(traceback.format_exception(error))
        told = f"{type(error).__name__}: {error}"
    refused = isinstance(error, NotComparable)
    return Outcome(ok=False, reason=redacted(told, secrets), failed_in=phase, refused=refused)


def _collect(job: Job, machine: Machine, secrets: Secrets, found: Found, outcome: Outcome) -> Outcome:
    """Bring the raw files home; a good run without them is no good run."""
    raw = f"{machine.layout.work}/{job.token}/raw"
    try:
        found.raw = collect(machine.site.sut, raw, job.staging, notes=found.notes, secrets=secrets)
    except (TareError, OSError) as error:
        found.raw = ()
        if outcome.ok:
            return Outcome(ok=False, reason=f"the raw files cannot be kept: {error}", failed_in=Phase.COLLECT)
        found.notices.append(f"the raw files cannot be kept: {error}")
    return outcome


def _read(job: Job, monitors: Monitors, found: Found, outcome: Outcome) -> Outcome:
    """What the monitors saw; a good run of which one saw not all is no good run."""
    try:
        found.monitors = monitors.read(job.staging, found.usage)
        found.raw = raw_names(job.staging)
        found.usage = with_saturation(with_sut_io(found.usage, job.staging), trace_of(job.staging))
    except (TareError, OSError) as error:
        if outcome.ok:
            return Outcome(ok=False, reason=str(error), failed_in=Phase.COLLECT)
    return outcome
