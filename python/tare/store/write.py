"""Writing a store: one process at a time, each attempt whole or not at all."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import StoreError
from tare.plan.extension import changes_between, extends
from tare.plan.model import Plan
from tare.run.ending import Ending
from tare.run.record import RunRecord
from tare.store.files import StoreLayout, attempt_name, held, sync_directory
from tare.store.raw import RawFile, file_digest, file_system
from tare.store.read import Store
from tare.store.rows import Rows, to_rows
from tare.store.schema import bring_up_to_date, connect, endings, facts, raw_files, runs, study, upsert
from tare.store_place import Place, StorePlace, place_of
from tare.version import __version__


class Writer(Store):
    """A store held by this process."""

    def __init__(self, place: StorePlace, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        super().__init__(place, engine)
        self._clock = clock

    @property
    def staging(self) -> Path:
        """Where the attempt under way leaves its raw files, in a directory `RUN-ATTEMPT`."""
        return self._layout.staging

    @property
    def now(self) -> Path:
        """Where those who watch are told what is being done."""
        return self._layout.now

    def commit(self, record: RunRecord) -> None:
        """Make a record and its staged raw files durable; after this returns, no crash loses it."""
        self.commit_all([record])

    def commit_all(self, records: Sequence[RunRecord]) -> None:
        """As `commit`, all of them in one transaction: all are there afterwards or none is.

        The files go first: a crash in between leaves files without a record, which the next open drops.
        """
        names = [attempt_name(record.run_id, record.attempt) for record in records]
        try:
            rows, files = [], []
            for record, name in zip(records, names, strict=True):
                staged = self._layout.staging / name
                staged.mkdir(exist_ok=True)
                files += _inventory(record, staged)
                rows.append(to_rows(record, self._clock()))
            self.files.keep(self._layout.staging, files, names)
            self._insert(rows, files)
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            if not self.place.is_directory and isinstance(error, SQLAlchemyError):
                from tare.store import postgresql

                raise postgresql.told(self.place, error) from error
            what = f"the record of {names[0]}" if len(records) == 1 else f"{len(records)} records"
            raise StoreError(
                f"{what} cannot be written to {self.place}: {getattr(error, 'orig', None) or error}",
                hint="free disk space or repair the disk, then run the same command again; committed runs are kept",
            ) from error

    def _insert(self, rows: Sequence[Rows], files: Sequence[RawFile]) -> None:
        bodies = {digest: body for row in rows for digest, body in row.facts.items()}
        with self.engine.begin() as connection:
            for digest, body in bodies.items():
                connection.execute(
                    upsert(connection, facts).values(digest=digest, body=body).on_conflict_do_nothing()
                )
            if rows:
                connection.execute(insert(runs), [row.run for row in rows])
            if files:
                connection.execute(insert(raw_files), [asdict(file) for file in files])

    def end(self, ending: Ending) -> None:
        """Note why the study ended, unless that is what was noted last."""
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


@contextmanager
def resume_store(where: Place, plan: Plan) -> Iterator[Writer]:
    """Hold the store for this plan, made when there is none; leftovers of a crash are dropped first."""
    place = place_of(where)
    layout = StoreLayout(place.directory)
    _make_directory(layout)
    with held(layout.lock):
        if not place.is_directory:
            with _at_url(place, layout, plan) as writer:
                yield writer
            return
        engine = connect(layout.database, read_only=False)
        try:
            with engine.begin() as connection:
                bring_up_to_date(connection, layout.root)
                _enrol(connection, place, plan)
            writer = Writer(place, engine)
            _drop_leftovers(writer, layout)
        except (SQLAlchemyError, sqlite3.Error, OSError, ValidationError) as error:
            raise StoreError(
                f"the store {place} cannot be opened: {getattr(error, 'orig', None) or error}"
            ) from error
        yield writer


@contextmanager
def _at_url(place: StorePlace, layout: StoreLayout, plan: Plan) -> Iterator[Writer]:
    from tare.store import postgresql  # its driver is an extra

    engine = postgresql.connect(place, read_only=False)
    try:
        file_system(place.raw)
        with postgresql.one_writer(engine, place):
            with engine.begin() as connection:
                postgresql.bring_up_to_date(connection, place)
                _enrol(connection, place, plan)
            for leftover in layout.staging.iterdir():
                shutil.rmtree(leftover)
            yield Writer(place, engine)
    except (SQLAlchemyError, ValidationError) as error:
        raise postgresql.told(place, error) from error
    finally:
        engine.dispose()


def _make_directory(layout: StoreLayout) -> None:
    try:
        if layout.root.is_dir() and not layout.lock.exists() and not _half_made(layout):
            raise StoreError(
                f"{layout.root} is a directory with other things in it, not a store",
                hint="give --store a new directory",
            )
        for directory in (layout.root, layout.raw, layout.staging):
            directory.mkdir(parents=True, exist_ok=True)
        sync_directory(layout.root)
        sync_directory(layout.root.parent)
    except OSError as error:
        raise StoreError(f"the store {layout.root} cannot be made: {error.strerror}") from error


def _half_made(layout: StoreLayout) -> bool:
    """Whether a directory without a lock is empty, or what a crash left of a store that was being made."""
    inside = {path.name for path in layout.root.iterdir()}
    database = {f"{layout.database.name}{end}" for end in ("", "-wal", "-shm")}
    if inside - {layout.raw.name, layout.staging.name, *database}:
        return False
    kept = [path for path in (layout.raw, layout.staging) if path.is_dir() and any(path.iterdir())]
    return not kept or layout.database.is_file()


def _enrol(connection: Connection, place: StorePlace, plan: Plan) -> None:
    """Write the study into a new store; refuse a store of another plan, unless this one only raises its cap."""
    row = connection.execute(select(study)).mappings().one_or_none()
    if row is None:
        connection.execute(
            insert(study).values(
                id=1,
                store_id=uuid4().hex,
                created_at=time.time(),
                tare_version=__version__,
                name=plan.study.name,
                scale=plan.study.scale,
                seed=plan.seed,
                plan_digest=plan.digest,
                text=plan.study.text,
                plan=plan.model_dump_json(),
            )
        )
    elif row["plan_digest"] != plan.digest:
        _extend(connection, place, Plan.model_validate_json(row["plan"]), plan)


def _extend(connection: Connection, place: StorePlace, was: Plan, now: Plan) -> None:
    """Put a plan with a higher cap in place of the one that is there; records keep the digest of their own."""
    if not extends(was, now):
        only = "" if now.study.imported else "; only a cap may be raised"
        raise StoreError(
            f"the store {place} belongs to another plan: {changes_between(was, now)}",
            hint=f"use another store with --store{only}",
        )
    row = {"plan_digest": now.digest, "text": now.study.text, "plan": now.model_dump_json()}
    connection.execute(update(study).where(study.c.id == 1).values(row))


def _drop_leftovers(writer: Writer, layout: StoreLayout) -> None:
    """Remove what an interrupted commit left: staged files, and raw directories that no record names."""
    recorded = {attempt_name(record.run_id, record.attempt) for record in writer.records()}
    for leftover in layout.staging.iterdir():
        shutil.rmtree(leftover)
    for directory in layout.raw.iterdir():
        if directory.name not in recorded:
            shutil.rmtree(directory)


def _inventory(record: RunRecord, staged: Path) -> list[RawFile]:
    """Size and digest of each raw file; the record and the directory must name the same ones."""
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
