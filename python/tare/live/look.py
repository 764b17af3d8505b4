"""Look at a store: read whatever has changed since the last look, and keep the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import func, select

from tare.analyze.timelines.marks import windows_began
from tare.analyze.timelines.runs import spans
from tare.errors import StoreError
from tare.live.known import Known, known_of
from tare.live.now import read_now
from tare.live.under_way import RunFollower
from tare.live.view import Last, ReportFile, View
from tare.live.windows import Point, placed
from tare.record.run_record import Phase, RunRecord
from tare.store import Store, open_store
from tare.store.files import StoreLayout, holder
from tare.store.schema import runs, study
from tare.store_place import Place, StorePlace, parse_store_url

Stamp = tuple[int, int, int] | tuple[int, str] | None
"""(inode, size, time) of a file, `None` if it does not exist; for a store at a URL, (attempts, digest of the
plan)."""
MOST_REPORTS = 50


@dataclass
class StoreReader:
    """Looks at the store whenever it is called, and keeps the view.

    Most looks are three stat(2) calls and one read of /proc/locks; for a store at a URL, two small queries. Files
    of the current run are read each time.
    """

    place: StorePlace
    view: View
    looker: RunFollower = field(default_factory=RunFollower)
    stamps: Sequence[Stamp] = ()

    @classmethod
    def opened(cls, where: Place) -> StoreReader:
        """A reader before its first look: only the store's plan is known.

        Raises `StoreError` if there is no store that this tare can read.
        """
        place = parse_store_url(where)
        store = open_store(place)
        return cls(place, View(place, known=Known(store.id, store.plan)))

    @classmethod
    def at(cls, where: Place) -> StoreReader:
        """A reader after its first look. Raises `StoreError` as `opened` does."""
        reader = cls.opened(where)
        reader.look()
        return reader

    @property
    def path(self) -> Path:
        """Directory of the store; for a store at a URL, of this machine's copies."""
        return self.place.directory

    def look(self) -> View:
        """Look, and return the current view."""
        if self.place.is_directory:
            self._look_at_files()
        else:
            self._look_at_url()
        layout = StoreLayout(self.path)
        holds = holder(layout.lock)
        now = read_now(layout.now)
        here = holds is not None
        running = here or bool(self.view.makers)
        if (here and now is not None and now.pid != holds) or (running and not here):
            now = None
        seen = tuple(self.looker.look(now)) if here and now is not None and now.over is None else ()
        traced = (tuple(one for one in seen if one.trace) or self.view.traced) if running else ()
        self.view = replace(
            self.view, running=running, now=now, seen=seen, traced=traced, reports=reports(self.path)
        )
        return self.view

    def _look_at_files(self) -> None:
        database = StoreLayout(self.path).database
        stamps = [_stamp(database), _stamp(database.with_name(f"{database.name}-wal"))]
        if stamps != self.stamps or self.view.problem is not None:
            self._read()
            self.stamps = stamps

    def _look_at_url(self) -> None:
        from tare.store.claims import makers  # its driver is an extra

        try:
            store = open_store(self.place)
            with store.reading() as connection:
                attempts = connection.execute(select(func.count()).select_from(runs)).scalar_one()
                stamps = [(int(attempts), str(connection.execute(select(study.c.plan_digest)).scalar_one()))]
                self.view = replace(self.view, makers=makers(connection))
        except StoreError as error:
            self.view = replace(self.view, problem=str(error))
            return
        if stamps != self.stamps or self.view.problem is not None:
            self._read(store)
            self.stamps = stamps

    def _read(self, opened: Store | None = None) -> None:
        try:
            store = opened or open_store(self.place)
            known = known_of(store, self.view.known)
            if known is not self.view.known:
                self.view = replace(self.view, last=self._last(store, known))
            self.view = replace(self.view, problem=None, known=known)
        except StoreError as error:
            self.view = replace(self.view, problem=str(error))

    def _last(self, store: Store, known: Known) -> Last | None:
        """The last committed run, with its windows. Also notes where its engine keeps files."""
        if known.last is None:
            return None
        record = store.record(known.last.made.run_id, known.last.attempt)
        root = record.engine and record.engine.engine_data_root
        self.looker.engine_root = root or self.looker.engine_root
        return _with_windows(record)


def reports(path: Path) -> tuple[ReportFile, ...]:
    """The HTML files in a store's directory, the newest first."""
    made = []
    try:
        for file in path.glob("*.html"):
            if file.is_file() and not file.is_symlink() and _is_text(file.name):
                about = file.stat()
                made.append(ReportFile(file.name, about.st_size, about.st_mtime))
    except OSError:
        return ()
    return tuple(sorted(made, key=lambda one: -one.written_at)[:MOST_REPORTS])


def _is_text(name: str) -> bool:
    """Whether a link can hold the name: not if its bytes are no UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_windows(record: RunRecord) -> Last:
    measured = record.measurement
    measured_s = dict(spans(record)).get(Phase.MEASURE, (None,))[0]
    windows = () if measured is None else measured.windows
    points = [Point(one.end_s, one.throughput_per_s, one.latency_p95_ms) for one in windows]
    laid = placed(points, windows_began(record, measured_s))
    return Last(record.run_id, record.arm, record.outcome.ok, measured and measured.unit, laid, measured_s)


def _stamp(path: Path) -> Stamp:
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_ino, about.st_size, about.st_mtime_ns)
