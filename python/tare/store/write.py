"""Write a store: one process at a time, each attempt completely or not at all."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, insert
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.run.claims import Claims
from tare.run.ending import Ending
from tare.store.files import attempt_name
from tare.store.raw import RawFile, file_digest
from tare.store.read import Store
from tare.store.rows import Rows, to_rows
from tare.store.schema import endings, facts, raw_files, runs, upsert
from tare.store_place import StorePlace


@dataclass(frozen=True)
class Staged:
    """An attempt whose raw files are staged, as rows."""

    name: str
    rows: Rows
    files: Sequence[RawFile]


def staged(record: RunRecord, staging: Path, at: float, series: Mapping[str, str] | None = None) -> Staged:
    """Make rows of a record (`to_rows`) and of its raw files. Raises `StoreError` if others are staged."""
    name = attempt_name(record.run_id, record.attempt)
    (staging / name).mkdir(exist_ok=True)
    return Staged(name, to_rows(record, at, series), _inventory(record, staging / name))


class Writer(Store):
    """A store that this process has locked."""

    def __init__(self, place: StorePlace, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        super().__init__(place, engine)
        self._clock = clock

    @property
    def staging(self) -> Path:
        """Directory in which the current attempt leaves its raw files, below `RUN-ATTEMPT`."""
        return self._layout.staging

    @property
    def claims(self) -> Claims | None:
        """Claims of blocks if several tares may write; `None` if this process is the only one."""
        return None

    def alone(self) -> None:
        """Ensure that nobody else writes until this process ends."""

    @property
    def now(self) -> Path:
        """File from which watchers read the current activity."""
        return self._layout.now

    def commit(self, record: RunRecord) -> None:
        """Make a record and its staged raw files durable; after this returns, no crash loses them."""
        self.commit_all([record])

    def commit_all(self, records: Sequence[RunRecord]) -> None:
        """Commit all records in one transaction: afterwards all are stored, or none.

        The files go first: a crash in between leaves files without a record, which the next open removes.
        """
        self.commit_staged(staged(record, self._layout.staging, self._clock()) for record in records)

    def commit_staged(self, attempts: Iterable[Staged]) -> None:
        """As `commit_all`, with rows that were made before."""
        names = list[str]()
        try:
            rows, files = list[Rows](), list[RawFile]()
            for attempt in attempts:
                names.append(attempt.name)
                rows.append(attempt.rows)
                files += attempt.files
            self.files.keep(self._layout.staging, files, names)
            self.insert(rows, files)
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            if not self.place.is_directory and isinstance(error, SQLAlchemyError):
                from tare.store import postgresql

                raise postgresql.store_error(self.place, error) from error
            what = f"the record of {names[0]}" if len(names) == 1 else f"{len(names)} records"
            raise StoreError(
                f"{what} cannot be written to {self.place}: {getattr(error, 'orig', None) or error}",
                hint="free disk space or repair the disk, then run the same command again; committed runs are kept",
            ) from error

    def insert(self, rows: Sequence[Rows], files: Sequence[RawFile]) -> None:
        """Insert in one transaction."""
        with self.engine.begin() as connection:
            insert_rows(connection, rows, files)

    def end(self, ending: Ending) -> None:
        """Record why the study ended, unless the last recorded ending is the same."""
        if self.endings()[-1:] == (ending,):
            return
        row = {"reason": ending.reason, "blocks": ending.blocks, "machine_s": ending.machine_s}
        try:
            with self.engine.begin() as connection:
                connection.execute(insert(endings).values(at=self._clock(), body=ending.model_dump_json(), **row))
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise StoreError(
                f"the ending cannot be written to {self.place}: {getattr(error, 'orig', None)}"
            ) from error


def insert_rows(connection: Connection, rows: Sequence[Rows], files: Sequence[RawFile]) -> None:
    """Insert rows into all tables of a store."""
    bodies = {digest: body for row in rows for digest, body in row.facts.items()}
    for digest, body in bodies.items():
        connection.execute(upsert(connection, facts).values(digest=digest, body=body).on_conflict_do_nothing())
    if rows:
        connection.execute(insert(runs), [row.run for row in rows])
    if files:
        connection.execute(insert(raw_files), [asdict(file) for file in files])


def _inventory(record: RunRecord, staged: Path) -> list[RawFile]:
    """Size and digest of each raw file; the record and the directory must name the same files."""
    names = sorted(str(path.relative_to(staged)) for path in staged.rglob("*") if not path.is_dir())
    if names != sorted(record.raw):
        raise StoreError(
            f"the record of {record.run_id} names the raw files {', '.join(sorted(record.raw)) or 'none'}, "
            f"but {', '.join(names) or 'none'} were staged"
        )
    return [
        RawFile(record.run_id, record.attempt, name, (staged / name).stat().st_size, file_digest(staged / name))
        for name in names
    ]
