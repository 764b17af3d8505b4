"""One look at a store: whatever has changed since the last one is read, the rest is kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import text

from tare.analyze.timelines.marks import windows_began
from tare.analyze.timelines.runs import spans
from tare.errors import StoreError
from tare.live.known import Known, known_of
from tare.live.now import read_now
from tare.live.under_way import RunFollower
from tare.live.view import Last, ReportFile, View
from tare.live.windows import Point, placed
from tare.run.record import Phase
from tare.store import Store, open_store
from tare.store.files import StoreLayout, holder

Stamp = tuple[int, int, int] | None
"""Inode, size and time of a file; `None`: it is not there."""
MOST_REPORTS = 50
_LAST = text(
    "SELECT json_extract(record, '$.measurement.windows') AS windows, "
    "json_extract(record, '$.measurement.unit') AS unit, json_extract(record, '$.usage') AS usage "
    "FROM runs WHERE rowid = :row"
)
_ENGINE = text(
    "SELECT facts.body FROM runs JOIN facts ON facts.digest = runs.engine ORDER BY runs.rowid DESC LIMIT 1"
)


@dataclass
class StoreReader:
    """Looks whenever it is asked, and says whether there was anything new.

    Most looks are three stat(2) and one read of /proc/locks. Files of the run under way are read each time.
    """

    path: Path
    view: View
    looker: RunFollower
    stamps: Sequence[Stamp] = ()

    @classmethod
    def at(cls, path: Path) -> StoreReader:
        """The first look. Raises `StoreError` where there is no store that this tare can read."""
        open_store(path)
        reader = cls(path, View(path), RunFollower())
        reader.look()
        return reader

    @property
    def _layout(self) -> StoreLayout:
        return StoreLayout(self.path)

    def look(self) -> View:
        """What there is to see now."""
        database = self._layout.database
        stamps = [_stamp(database), _stamp(database.with_name(f"{database.name}-wal"))]
        if stamps != self.stamps or self.view.problem is not None:
            self._read()
            self.stamps = stamps
        holds = holder(self._layout.lock)
        now = read_now(self._layout.now)
        running = holds is not None
        if running and now is not None and now.pid != holds:
            now = None
        seen = tuple(self.looker.look(now)) if running and now is not None and now.over is None else ()
        traced = (tuple(one for one in seen if one.trace) or self.view.traced) if running else ()
        self.view = replace(
            self.view, running=running, now=now, seen=seen, traced=traced, reports=reports(self.path)
        )
        return self.view

    def _read(self) -> None:
        try:
            store = open_store(self.path)
            known = known_of(store, self.view.known)
            last = self.view.last if known is self.view.known else _last(store, known)
            self.looker.engine_root = _engine_root(store) or self.looker.engine_root
            self.view = replace(self.view, problem=None, known=known, last=last)
        except StoreError as error:
            self.view = replace(self.view, problem=str(error))


def reports(path: Path) -> tuple[ReportFile, ...]:
    """The HTML files in a store's directory, the newest first."""
    made = []
    try:
        for file in path.glob("*.html"):
            if file.is_file() and not file.is_symlink():
                about = file.stat()
                made.append(ReportFile(file.name, about.st_size, about.st_mtime))
    except OSError:
        return ()
    return tuple(sorted(made, key=lambda one: -one.written_at)[:MOST_REPORTS])


def _last(store: Store, known: Known) -> Last | None:
    """The run that was committed last, with its windows."""
    if known.last is None:
        return None
    with store.reading() as connection:
        row = connection.execute(_LAST, {"row": known.last.row}).one()
    windows: list[dict[str, Any]] = json.loads(row.windows) if row.windows else []
    record = known.last.record.model_copy(update={"usage": json.loads(row.usage) if row.usage else None})
    measured_s = dict(spans(record)).get(Phase.MEASURE, (None,))[0]
    points = [Point(one["end_s"], one.get("throughput_per_s"), one.get("latency_p95_ms")) for one in windows]
    laid = placed(points, windows_began(record, measured_s))
    return Last(record.run_id, record.arm, record.outcome.ok, row.unit, laid, measured_s)


def _engine_root(store: Store) -> str | None:
    with store.reading() as connection:
        body = connection.execute(_ENGINE).scalar_one_or_none()
    root = json.loads(body).get("engine_data_root") if body else None
    return root if isinstance(root, str) else None


def _stamp(path: Path) -> Stamp:
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_ino, about.st_size, about.st_mtime_ns)
