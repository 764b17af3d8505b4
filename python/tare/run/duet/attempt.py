"""Two attempts at once: prepared one after the other, then driven together, each in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from tare.errors import TareError
from tare.record.run_record import RunRecord
from tare.record.swap_halves import Swap
from tare.run.attempt.attempt import Attempt
from tare.run.attempt.job import Job
from tare.run.attempt.phases import Ready
from tare.run.duet.barrier import INTERRUPTED, ArmUnderLoad, Barrier, BreakableClock, DuetBarrier
from tare.run.duet.side import DuetPace
from tare.run.events import Event, Observer
from tare.run.machine import Machine
from tare.run.parity.compare import as_sentence, differences
from tare.run.parity.references import known_variables_of
from tare.workloads import Parameters

MOST_BYTES_PER_S = 1 << 20
"""64 pages of 16 KiB a second: about half of what a single spinning disk can do, little for anything faster."""


_POLL_S = 0.02


def bytes_per_s(record: RunRecord) -> float | None:
    """Return the SUT's disk traffic in the measure phase (bytes a second); `None` if the trace has no figures."""
    if (usage := record.usage) is None:
        return None
    known = [part for part in (usage.sut_read_bytes, usage.sut_write_bytes) if part is not None]
    return sum(known) / usage.monotonic_s if known and usage.monotonic_s else None


def why_too_much_io(record: RunRecord) -> str | None:
    """Return why the run's disk traffic rules out a duet; `None` if it does not."""
    rate = bytes_per_s(record)
    if rate is None or rate <= MOST_BYTES_PER_S:
        return None
    return (
        f"{record.arm} read and wrote {rate / 1e6:.1f} MB/s while it was measured: two arms of a duet share the "
        "disk and would wait for each other, so use another protocol for such work"
    )


def attempt_duet(jobs: Sequence[Job], machine: Machine, observer: Observer) -> tuple[RunRecord, ...]:
    """Attempt both runs of a block at once: both are good, or neither. Only an interruption leaves no records."""
    barrier, in_turn = DuetBarrier(), serial(observer)
    breakable = replace(machine, clock=BreakableClock(machine.clock, barrier))
    both = [
        Attempt(job, breakable, in_turn, DuetPace(barrier, number, job.slot, machine))
        for number, job in enumerate(jobs)
        if job.slot is not None
    ]
    try:
        with machine.interrupts.allowed():
            drive(both, barrier, lambda threads, ready: _conduct(threads, barrier, machine, ready))
        for each in both:
            each.collect()
        _both_or_neither(both, machine)
    finally:
        for each in both:
            each.tear_down()
    records = tuple(each.record() for each in both)
    for record in records:
        machine.references.note(record)
    return records


Conduct = Callable[[Sequence[threading.Thread], Sequence[Ready]], None]
"""What the conducting thread does until all threads have ended."""


def drive(attempts: Sequence[Attempt], barrier: Barrier, conduct: Conduct) -> None:
    """Make all attempts ready, one after the other, then run them at once up to the cool-down."""
    ready = []
    for each in attempts:
        made = each.take(each.phases.make_ready)
        if made is None:
            return
        ready.append(made)
    threads = [_AttemptThread(each, made, barrier) for each, made in zip(attempts, ready, strict=True)]
    try:
        for thread in threads:
            thread.start()
        conduct(threads, ready)
    except BaseException:
        barrier.cancel(INTERRUPTED)
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        barrier.driven = True
    for thread in threads:
        if thread.error is not None:
            raise thread.error


class _AttemptThread(threading.Thread):
    """Thread of one attempt's warm-up, measure and cool-down; an early end cancels the others."""

    def __init__(self, attempt: Attempt, ready: Ready, barrier: Barrier) -> None:
        super().__init__(name=f"tare-{attempt.job.run.id}")
        self._attempt, self._ready, self._barrier = attempt, ready, barrier
        self.error: BaseException | None = None

    def run(self) -> None:
        """Drive the attempt to its end. Errors become its outcome, or are raised again by the conducting thread."""
        attempt = self._attempt
        try:
            attempt.take(lambda: attempt.phases.conduct(self._ready))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that joins this one
            self.error = error
        if self.error is not None or not attempt.outcome.ok:
            self._barrier.cancel(partner_failed(attempt))


def _conduct(
    threads: Sequence[threading.Thread], barrier: DuetBarrier, machine: Machine, ready: Sequence[Ready]
) -> None:
    """Swap the CPU sets half-way, and wait for the end."""
    clock, parameters = machine.clock, [made.parameters for made in ready]
    while any(thread.is_alive() for thread in threads):
        under_load = barrier.under_load
        due = under_load is not None and clock.monotonic() >= half_way_s(under_load, parameters)
        if due and barrier.swap is None and barrier.why is None and not barrier.over:
            _swap(barrier, machine)
        clock.sleep(_POLL_S)


def half_way_s(under_load: Sequence[ArmUnderLoad], parameters: Sequence[Parameters]) -> float:
    """Return when half of the time in which both clients drive load should be over, on the monotonic clock.

    A generator takes seconds to start, as its warm-up shows: that part of the warm-up's process time in which it
    drove no load. How much of it came before the load is unknown, so half of it is assumed; neither half of the
    measure phase is then shorter by more than that.
    """
    start = max(map(_load_starts_s, under_load, parameters))
    return start + min(each.measure_s for each in parameters) / 2


def _load_starts_s(one: ArmUnderLoad, parameters: Parameters) -> float:
    beside_s = 0.0 if one.warm_up_s is None else max(0.0, one.warm_up_s - parameters.warmup_s)
    return one.started_s + beside_s / 2 + one.own_warmup_s


def _swap(barrier: DuetBarrier, machine: Machine) -> None:
    """Move clients and servers of both arms, within a few milliseconds in which the two share CPUs."""
    began_s = machine.clock.monotonic()
    try:
        for one in barrier.under_load or ():
            for task in one.tasks:
                machine.set_cpus(task, one.moves_to)
    except (TareError, OSError) as error:
        barrier.cancel(f"the CPU sets of the duet could not be swapped: {error}")
        return
    barrier.swap = Swap(began_s, machine.clock.monotonic())


def _both_or_neither(both: Sequence[Attempt], machine: Machine) -> None:
    """Void a run without its partner; refuse a run with too much disk traffic, and two that are not comparable."""
    first, second = both
    for each in both:
        if each.outcome.ok and (why := why_too_much_io(each.record())):
            each.refuse(why)
    if first.outcome.ok and second.outcome.ok:
        study, database = first.job.plan.study, first.job.arm.settings.sut.database
        unlike = differences(
            study, first.record(), second.record(), known_variables_of(machine.databases, database)
        )
        if unlike:
            second.refuse(as_sentence(unlike))
    for one, other in ((first, second), (second, first)):
        if not other.outcome.ok:
            one.void(partner_failed(other))


def partner_failed(failed: Attempt) -> str:
    """Return why an attempt that shared time with a failed one is void."""
    return f"{failed.job.run.arm}, which ran at the same time, failed: {failed.outcome.reason}"


def serial(observer: Observer) -> Observer:
    """Wrap an observer so that only one thread calls it at a time."""
    lock = threading.Lock()

    def observe(event: Event) -> None:
        with lock:
            observer(event)

    return observe
