"""One attempt at one run: provision → load → warm-up → measure → cool-down → collect → teardown."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import TypeVar

from docker.errors import APIError

from tare.databases import Secrets
from tare.errors import NO_THREAD, NotComparable, TareError, is_thread_refused
from tare.record.raw_files import client_trace_of, node_trace_of, trace_of
from tare.record.run_record import Outcome, Phase, RunRecord
from tare.record.trace import Elsewhere, Traces
from tare.record.turns import Rotation, turns_of
from tare.run.attempt.context import other_workdirs, workdir_on
from tare.run.attempt.job import Draft, Job, record_of
from tare.run.attempt.pace import ALONE, Pace, Stopwatch
from tare.run.attempt.phases import Phases
from tare.run.attempt.raw_files import collect, new_secrets, raw_names, redacted
from tare.run.attempt.teardown import Teardown
from tare.run.attempt.trees import changed_trees
from tare.run.events import Observer, PhaseStarted
from tare.run.machine import Machine
from tare.run.monitoring.monitors import Monitors
from tare.run.usage import with_traces
from tare.sites.engine import in_words, is_no_answer
from tare.traps.of_log import fallbacks

T = TypeVar("T")


def attempt(job: Job, machine: Machine, observer: Observer) -> RunRecord:
    """Make one attempt and return its record, good or failed. Only an interruption leaves no record."""
    one = Attempt(job, machine, observer)
    try:
        with machine.interrupts.allowed():
            one.take(one.phases.drive)
        one.collect()
    finally:
        one.tear_down()
    record = one.record()
    machine.references.note(record)
    return record


class Attempt:
    """An attempt in progress: its observations, its outcome and its teardown steps."""

    def __init__(
        self,
        job: Job,
        machine: Machine,
        observer: Observer,
        pace: Pace = ALONE,
        secrets: Secrets | None = None,
    ) -> None:
        """`secrets`: those of the server that the attempt continues on; `None` if it starts its own server."""
        self.job = job
        self.outcome = Outcome(ok=True)
        self._machine = machine
        self._draft = Draft(site=machine.site.labels.get("site"))
        self._secrets = secrets or new_secrets(tls=job.arm.settings.sut.tls)
        self._draft.duet = None if job.slot is None else job.slot.times
        self._stops, self._teardown = Teardown(), Teardown()
        self._watch = Stopwatch(machine.clock, lambda phase, s: observer(PhaseStarted(job.run, phase, s)))
        self._monitors = Monitors(machine)
        self.phases = Phases(
            job,
            machine,
            self._secrets,
            self._watch,
            self._draft,
            self._stops,
            self._teardown,
            self._monitors,
            observer,
            pace,
        )

    def take(self, step: Callable[[], T]) -> T | None:
        """Run one step. An exception becomes the outcome of the attempt, and `None` is returned."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - one run must not end a study of hours; the trace is kept
            self._fail(error)
            return None

    def void(self, why: str) -> None:
        """Mark the attempt as unusable for a reason outside of it."""
        if self.outcome.ok:
            self.outcome = Outcome(ok=False, reason=redacted(why, self._secrets), failed_in=self._watch.current)

    def refuse(self, why: str) -> None:
        """Mark the attempt as not comparable with the runs that it would be compared with."""
        self.outcome = Outcome(ok=False, reason=why, failed_in=Phase.MEASURE, refused=True)

    def took_turns(self, rotation: Rotation) -> None:
        """Record how the attempt took turns with others."""
        self._draft.rotation = rotation

    def collect(self) -> None:
        """Stop all programs and copy the raw files into the store's staging; a good run fails without raw files."""
        with self._watch.phase(Phase.COLLECT):
            self._undo(self._stops)
            self._look_at_trees()
            self._bring_home()
            self._read_monitors()

    def tear_down(self) -> None:
        """Remove everything that the attempt made."""
        with self._watch.phase(Phase.TEARDOWN):
            self._undo(self._stops)
            self._undo(self._teardown)

    def record(self) -> RunRecord:
        """Return the record of the attempt."""
        return record_of(self.job, self._draft, self._watch.times, self.outcome)

    def _undo(self, steps: Teardown) -> None:
        self._draft.notices += [redacted(problem, self._secrets) for problem in steps.run()]

    def _fail(self, error: Exception) -> None:
        reason = str(error)
        if is_no_answer(error):
            reason = f"the container engine does not answer: {in_words(error)}"
        elif isinstance(error, APIError):
            reason = f"the container engine refused a call: {in_words(error)}"
        elif not isinstance(error, (TareError, OSError)):
            self._draft.notes["traceback.txt"] = "".join(traceback.format_exception(error))
            reason = NO_THREAD if is_thread_refused(error) else f"{type(error).__name__}: {error}"
        self.outcome = Outcome(
            ok=False,
            reason=redacted(reason, self._secrets),
            failed_in=self._watch.current,
            refused=isinstance(error, NotComparable),
        )

    def _look_at_trees(self) -> None:
        """Fail the attempt if a server changed files of its image: other runs had other bits."""
        try:
            notices = changed_trees(self._machine, self.job.arm.settings, self.job.images)
        except (TareError, OSError) as error:
            notices = [f"the images could not be compared: {error}"]
        if notices and self.outcome.ok:
            self.outcome = Outcome(ok=False, reason="; ".join(notices), failed_in=Phase.COLLECT)
        else:
            self._draft.notices += notices

    def _bring_home(self) -> None:
        machine, draft, token = self._machine, self._draft, self.job.token
        first = workdir_on(machine, machine.site.sut, token)
        workdirs = (first, *other_workdirs(machine, self.job.arm.settings, token))
        try:
            draft.raw = collect(workdirs, self.job.staging, notes=draft.notes, secrets=self._secrets)
            draft.notices += fallbacks(self.job.staging)
        except (TareError, OSError) as error:
            draft.raw = ()
            if self.outcome.ok:
                problem = f"the raw files cannot be kept: {error}"
                self.outcome = Outcome(ok=False, reason=problem, failed_in=Phase.COLLECT)
            else:
                draft.notices.append(f"the raw files cannot be kept: {error}")

    def _read_monitors(self) -> None:
        """Read what the monitors recorded. An unreadable recording fails a good run."""
        draft, staging = self._draft, self.job.staging
        try:
            between = draft.between
            ahead_s = {} if between is None else between.ahead_s
            draft.monitors = self._monitors.read(staging, draft.usage, ahead_s)
            draft.raw = raw_names(staging)
            client = None if between is None else Elsewhere(client_trace_of(staging), ahead_s[between.client])
            traces = Traces(trace_of(staging), client, self._traces_of_nodes(ahead_s))
            draft.usage = with_traces(
                draft.usage, traces, self.job.arm.settings.sut.limits.disk_iops, turns_of(draft.rotation)
            )
        except (TareError, OSError) as error:
            if self.outcome.ok:
                self.outcome = Outcome(ok=False, reason=str(error), failed_in=Phase.COLLECT)

    def _traces_of_nodes(self, ahead_s: Mapping[str, float]) -> tuple[Elsewhere, ...]:
        """Traces of further nodes that have hosts of their own."""
        further = list(self._draft.nodes.items())[1:]
        return tuple(
            Elsewhere(node_trace_of(self.job.staging, name), ahead_s[node.on], name)
            for name, node in further
            if node.on is not None and node.on in ahead_s
        )
