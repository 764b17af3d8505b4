"""An observer that keeps `now.json` beside the store. It fails silently: no watcher is worth a failed run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.live.now import AtSite, Current, Line, Now
from tare.plan.model import Plan
from tare.plural import counted
from tare.protocols.stopping import Decision
from tare.record.emulated import MARK, marked
from tare.record.run_record import RunRecord
from tare.run.attempt.context import make_token
from tare.run.events import (
    BlockEnded,
    Emulated,
    Event,
    FromSite,
    MeasureChosen,
    Notice,
    Observer,
    PhaseStarted,
    Preparing,
    RunEnded,
    RunStarted,
    SiteStands,
    Standing,
)

_LINES = 200
_LONGEST_LINE = 2000
_MODE = 0o600


class StatusWriter:
    """Records each event and writes it at once: about ten small files per run, none while it measures."""

    def __init__(
        self, path: Path, plan: Plan, store_id: str, work: Path, clock: Callable[[], float] = time.time
    ) -> None:
        self._path, self._plan, self._store_id, self._clock = path, plan, store_id, clock
        self._lock = threading.Lock()
        self.now = Now(pid=os.getpid(), began_at=clock(), work=str(work))

    def take(self, event: Event) -> None:
        """Record an event; the two runs of a duet may report at the same time."""
        with self._lock:
            if isinstance(event, SiteStands):
                self.now = self._stands(event)
            else:
                self.now = self._of_site(event) if isinstance(event, FromSite) else self._after(event)
            self._write()

    def end(self, how: str) -> None:
        """Record that the session is over."""
        with self._lock:
            self.now = self._logged(how).model_copy(
                update={"over": how, "runs": (), "sites": (), "preparing": None}
            )
            self._write()

    def _after(self, event: Event) -> Now:
        now = self.now
        if isinstance(event, Preparing):
            return self._logged(f"preparing {event.what}").model_copy(update={"preparing": event.what, "runs": ()})
        if isinstance(event, RunStarted):
            logged = self._logged(f"{event.run.id} starts, attempt {event.attempt}")
            under_way = [run for run in now.runs if run.run_id != event.run.id]
            return logged.model_copy(update={"preparing": None, "runs": (*under_way, self._current(event))})
        if isinstance(event, PhaseStarted):
            return now.model_copy(update={"runs": tuple(self._in_phase(run, event) for run in now.runs)})
        if isinstance(event, Emulated):
            return now.model_copy(update={"runs": tuple(_emulated(run, event) for run in now.runs)})
        if isinstance(event, RunEnded):
            left = tuple(run for run in now.runs if run.run_id != event.record.run_id)
            return self._logged(*_ended(event.record)).model_copy(update={"runs": left})
        return self._logged(*_lines(event))

    def _of_site(self, report: FromSite) -> Now:
        """State after an event of one of several sites; its runs are listed among those of the others."""
        event = report.event
        if isinstance(event, Preparing):
            return self._at(
                self._logged(f"{report.site}: preparing {event.what}"), report.site, preparing=event.what
            )
        if isinstance(event, Notice):
            return self._logged(f"{report.site}: {event.text}")
        if isinstance(event, RunStarted):
            others = [run for run in self.now.runs if run.run_id != event.run.id]
            logged = self._at(self._logged(f"{event.run.id} begins on {report.site}"), report.site, preparing=None)
            return logged.model_copy(update={"runs": (*others, self._current(event, report.site))})
        return self._after(event)

    def _stands(self, event: SiteStands) -> Now:
        """State after a site's change; a site that is not at work has no current run."""
        now = AtSite(site=event.site, standing=event.standing, since=self._clock(), why=event.why[:_LONGEST_LINE])
        sites = {each.site: each for each in self.now.sites} | {event.site: now}
        left = tuple(run for run in self.now.runs if run.site != event.site or event.standing is Standing.AT_WORK)
        return self.now.model_copy(update={"sites": tuple(sites[name] for name in sorted(sites)), "runs": left})

    def _at(self, now: Now, site: str, *, preparing: str | None) -> Now:
        """Set what a site is preparing."""
        update = {"preparing": preparing, "since": self._clock()}
        sites = (each.model_copy(update=update) if each.site == site else each for each in now.sites)
        return now.model_copy(update={"sites": tuple(sites)})

    def _current(self, event: RunStarted, site: str | None = None) -> Current:
        run = event.run
        return Current(
            run_id=run.id,
            arm=run.arm,
            block=run.block,
            attempt=event.attempt,
            token=make_token(self._store_id, run.id, event.attempt),
            began_at=self._clock(),
            workload=self._plan.arm(run.arm).settings.workload_name,
            site=site,
            hosts=event.hosts,
        )

    def _in_phase(self, run: Current, event: PhaseStarted) -> Current:
        if run.run_id != event.run.id:
            return run
        update = {"phase": event.phase, "phase_began_at": self._clock(), "expected_s": event.expected_s}
        return run.model_copy(update=update)

    def _logged(self, *lines: str) -> Now:
        new = tuple(Line(at=self._clock(), text=line[:_LONGEST_LINE]) for line in lines)
        return self.now.model_copy(update={"log": (*self.now.log, *new)[-_LINES:]})

    def _write(self) -> None:
        """Replace the file as a whole. It is not synced: after a power loss, there is nothing to watch."""
        scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError, ValueError):  # a full disk, or text that UTF-8 cannot represent
            scratch.unlink(missing_ok=True)  # an earlier process's, or a link of whoever made the store
            descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.now.model_dump_json().encode())
            scratch.replace(self._path)


@contextmanager
def with_status_file(writer: StatusWriter, observer: Observer) -> Iterator[Observer]:
    """Give an observer that passes events to both; at the end, the writer records how the study ended."""

    def tell(event: Event) -> None:
        writer.take(event)
        observer(event)

    try:
        yield tell
    except BaseException as error:
        writer.end(f"ended by {type(error).__name__}: {error}")
        raise
    writer.end("tare run has ended")


def _emulated(run: Current, event: Emulated) -> Current:
    return run.model_copy(update={"emulated": event.sides}) if run.run_id == event.run.id else run


def _ended(record: RunRecord) -> tuple[str, ...]:
    where = "" if record.site is None else f" on {record.site}"
    measured = record.measurement
    if record.outcome.ok and measured is not None and measured.throughput_per_s is not None:
        name = marked(record.run_id, MARK if record.emulated else None)
        head = f"{name}{where}: {measured.throughput_per_s:,.1f} {measured.unit}/s"
    else:
        failed_in, why = record.outcome.failed_in, record.outcome.reason
        head = f"{record.run_id}{where}: attempt {record.attempt} failed in {failed_in}: {why}"
    return (head, *(f"{record.run_id}: {notice}" for notice in record.notices))


def _lines(event: BlockEnded | MeasureChosen | Notice | object) -> tuple[str, ...]:
    if isinstance(event, BlockEnded):
        return _block(event.decision)
    if isinstance(event, MeasureChosen):
        return (f"after the pilot, {event.choice.sentence}",)
    return (event.text,) if isinstance(event, Notice) else ()


def _block(decided: Decision) -> tuple[str, ...]:
    if decided.end is not None:
        return (f"{counted(decided.blocks, 'block')} done; no more are needed ({decided.end.value})",)
    more = "" if decided.more_blocks is None else f", about {decided.more_blocks} more needed"
    return (f"{counted(decided.blocks, 'block')} made{more}",)
