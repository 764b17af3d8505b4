"""Two attempts at once: made ready one after the other, then driven together, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from tare.errors import TareError
from tare.run.attempt.attempt import Attempt
from tare.run.attempt.job import Job
from tare.run.attempt.phases import Ready
from tare.run.duet.barrier import ArmUnderLoad, BreakableClock, DuetBarrier, Swap
from tare.run.duet.side import Part
from tare.run.events import Event, Observer
from tare.run.machine import Machine
from tare.run.parity.compare import as_sentence, differences
from tare.run.parity.references import server_of
from tare.run.record import RunRecord
from tare.workloads import Parameters

MOST_BYTES_PER_S = 1 << 20
"""64 pages of 16 KiB a second: about half of what a single spinning disk does, little to anything faster."""


_POLL_S = 0.02


def bytes_per_s(record: RunRecord) -> float | None:
    """What the SUT read and wrote while it was measured, by the run's trace; `None` where that says nothing."""
    usage = record.usage or {}
    moved = [usage.get(key) for key in ("sut_read_bytes", "sut_write_bytes")]
    known = [float(part) for part in moved if part is not None]
    return sum(known) / float(usage["monotonic_s"]) if known and usage.get("monotonic_s") else None


def too_much(record: RunRecord) -> str | None:
    """Why the run may not stand in a duet, `None` where nothing speaks against it."""
    rate = bytes_per_s(record)
    if rate is None or rate <= MOST_BYTES_PER_S:
        return None
    return (
        f"{record.arm} read and wrote {rate / 1e6:.1f} MB/s while it was measured: two arms of a duet share the "
        "disk and would wait for each other, so use another protocol for such work"
    )


def attempt_duet(jobs: Sequence[Job], machine: Machine, observer: Observer) -> tuple[RunRecord, ...]:
    """Attempt both runs of a block at once: both are good, or neither. Only an interruption leaves no records."""
    meeting, in_turn = DuetBarrier(), _serial(observer)
    breakable = replace(machine, clock=BreakableClock(machine.clock, meeting))
    both = [
        Attempt(job, breakable, in_turn, Part(meeting, number, job.slot, machine))
        for number, job in enumerate(jobs)
        if job.slot is not None
    ]
    try:
        with machine.interrupts.allowed():
            _drive(both, meeting, machine)
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


def _drive(both: Sequence[Attempt], meeting: DuetBarrier, machine: Machine) -> None:
    """Everything up to the cool-down."""
    ready = []
    for each in both:
        made = each.take(each.phases.make_ready)
        if made is None:
            return
        ready.append(made)
    players = [_Player(each, made, meeting) for each, made in zip(both, ready, strict=True)]
    try:
        for player in players:
            player.start()
        _conduct(players, meeting, machine, [made.parameters for made in ready])
    except BaseException:
        meeting.break_off("the duet was interrupted")
        raise
    finally:
        for player in players:
            if player.ident is not None:
                player.join()
        meeting.dissolved = True
    for player in players:
        if player.died is not None:
            raise player.died


class _Player(threading.Thread):
    """One attempt's warm-up, measure and cool-down; whatever ends it early ends the duet."""

    def __init__(self, attempt: Attempt, ready: Ready, meeting: DuetBarrier) -> None:
        super().__init__(name=f"tare-{attempt.job.run.id}")
        self._attempt, self._ready, self._meeting = attempt, ready, meeting
        self.died: BaseException | None = None

    def run(self) -> None:
        """Play to the end; every exception is an outcome, or raised again by the thread that conducts."""
        attempt = self._attempt
        try:
            attempt.take(lambda: attempt.phases.conduct(self._ready))
        except BaseException as error:  # noqa: BLE001 - a thread has nobody above it who would hear of it
            self.died = error
        if self.died is not None or not attempt.outcome.ok:
            self._meeting.break_off(_of_its_partner(attempt))


def _conduct(
    players: Sequence[_Player], meeting: DuetBarrier, machine: Machine, parameters: Sequence[Parameters]
) -> None:
    """Swap the CPU sets half-way, and wait for the end."""
    clock = machine.clock
    while any(player.is_alive() for player in players):
        playing = meeting.playing
        due = playing is not None and clock.monotonic() >= half_way_s(playing, parameters)
        if due and meeting.swap is None and meeting.why is None and not meeting.over:
            _swap(meeting, machine)
        clock.sleep(_POLL_S)


def half_way_s(playing: Sequence[ArmUnderLoad], parameters: Sequence[Parameters]) -> float:
    """When half of the time in which both drive should be over, on the monotonic clock.

    That a generator takes seconds to begin is known by its warm-up: by what that took beside driving. How much of
    it came before is not known; taking half of it for that, neither half is short by more than as much.
    """
    begin = max(map(_begins_s, playing, parameters))
    return begin + min(each.measure_s for each in parameters) / 2


def _begins_s(one: ArmUnderLoad, parameters: Parameters) -> float:
    beside_s = 0.0 if one.warm_up_s is None else max(0.0, one.warm_up_s - parameters.warmup_s)
    return one.started_s + beside_s / 2 + one.own_warmup_s


def _swap(meeting: DuetBarrier, machine: Machine) -> None:
    """Clients and servers of both, within a few milliseconds; for these the two share CPUs."""
    began_s = machine.clock.monotonic()
    try:
        for one in meeting.playing or ():
            for task in one.tasks:
                machine.set_cpus(task, one.moves_to)
    except (TareError, OSError) as error:
        meeting.break_off(f"the CPU sets of the duet could not be swapped: {error}")
        return
    meeting.swap = Swap(began_s, machine.clock.monotonic())


def _both_or_neither(both: Sequence[Attempt], machine: Machine) -> None:
    """A run without its partner is void; so are two that share a disk or differ in more than the study names."""
    first, second = both
    for each in both:
        if each.outcome.ok and (why := too_much(each.record())):
            each.refuse(why)
    if first.outcome.ok and second.outcome.ok:
        study, database = first.job.plan.study, first.job.arm.settings.sut.database
        unlike = differences(study, first.record(), second.record(), server_of(machine.databases, database))
        if unlike:
            second.refuse(as_sentence(unlike))
    for one, other in ((first, second), (second, first)):
        if not other.outcome.ok:
            one.void(_of_its_partner(other))


def _of_its_partner(failed: Attempt) -> str:
    return f"{failed.job.run.arm}, which ran at the same time, failed: {failed.outcome.reason}"


def _serial(observer: Observer) -> Observer:
    """Observers are called by one thread at a time."""
    lock = threading.Lock()

    def observe(event: Event) -> None:
        with lock:
            observer(event)

    return observe
