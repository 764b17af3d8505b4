"""Read a store, also while a study is writing it."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import cast

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, StaticPool, create_engine, select
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import StoreError
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.run.ending import Ending
from tare.store.files import StoreLayout, must_be_plain_store, store_name
from tare.store.raw import OwnFiles, RawFile, RawFiles, SharedFiles
from tare.store.rows import REFERENCES, Facts, from_row, put_together
from tare.store.schema import (
    FORMAT,
    begin_with,
    bring_up_to_date,
    check_format,
    connect,
    endings,
    facts,
    raw_files,
    runs,
    study,
)
from tare.store.sqlite_errors import reason_of, room_hint
from tare.store_place import Place, StorePlace, parse_store_url

_UNREADABLE = (SQLAlchemyError, sqlite3.Error, ValidationError, ValueError, KeyError, RecursionError)
"""Errors of a damaged database, and of damaged records in an intact one."""


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch the garbage collector off, which would scan all records again and again while more are read."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def kept_until_exit() -> Iterator[list[object]]:
    """As `without_collector`; later collections also skip what was read. For a program that keeps it until it ends.

    Objects appended to the list live until the process ends: freeing 100,000 records one by one takes a second.
    """
    with without_collector():
        kept: list[object] = []
        yield kept
        kept.append(kept)  # no reference count reaches zero, and no collection scans it
        gc.freeze()


class Store:
    """One study's plan and its records so far. Every call reads what is committed at that time."""

    def __init__(self, place: StorePlace, engine: Engine, files: RawFiles | None = None) -> None:
        self.place = place
        self.engine = engine
        self._layout = StoreLayout(place.directory)
        with self.reading() as connection:
            row = connection.execute(select(study)).mappings().one_or_none()
        if row is None:
            raise StoreError(f"{place} holds no study yet", hint="`tare run` writes one")
        self.id: str = row["store_id"]
        self.tare_version: str = row["tare_version"]
        self._plan: str = row["plan"]
        self.files: RawFiles = files or self._files_of(place)

    @cached_property
    def plan(self) -> Plan:
        """The plan, read on first use: it may have 100,000 runs, and a writer of the store has it already."""
        try:
            return Plan.model_validate_json(self._plan)
        except ValidationError as error:
            raise _unreadable(self.place, error) from error

    @property
    def path(self) -> Path:
        """Directory of the store; for a store at a URL, where this machine keeps its files."""
        return self.place.directory

    def records(self) -> tuple[RunRecord, ...]:
        """Every attempt of every run, failed ones included, in the order of the plan and of the attempts."""
        with self.reading() as connection, without_collector():
            shared = Facts({row.digest: row.body for row in connection.execute(select(facts))})
            wanted = select(runs.c.record, *(runs.c[part] for part in REFERENCES))
            rows = connection.execute(wanted.order_by(runs.c.run_index, runs.c.attempt))
            return tuple(put_together(record, tuple(references), shared) for record, *references in rows)

    def record(self, run_id: str, attempt: int) -> RunRecord:
        """One attempt. Raises `StoreError` if it does not exist."""
        with self.reading() as connection:
            wanted = select(runs.c.record, *(runs.c[part] for part in REFERENCES))
            asked = wanted.where(runs.c.run_id == run_id, runs.c.attempt == attempt)
            row = connection.execute(asked).mappings().one()
            named = {row[part] for part in REFERENCES} - {None}
            bodies = connection.execute(select(facts).where(facts.c.digest.in_(named)))
            return from_row(row, Facts({each.digest: each.body for each in bodies}))

    def attempts(self) -> frozenset[tuple[str, int]]:
        """(run, attempt) of every attempt."""
        with self.reading() as connection, without_collector():
            rows = connection.execute(select(runs.c.run_id, runs.c.attempt)).all()
            return frozenset([(run_id, attempt) for run_id, attempt in rows])

    def endings(self) -> tuple[Ending, ...]:
        """Why `tare run` ended the study, in order; more than one if the study was continued."""
        with self.reading() as connection:
            rows = connection.execute(select(endings.c.body).order_by(endings.c.id)).all()
            return tuple(Ending.model_validate_json(row.body) for row in rows)

    def raw(self, record: RunRecord, name: str) -> Path:
        """Path of a raw file of a record, or of a directory of them; a copy if the store is at a URL."""
        return self.files.path(record, name)

    def holds(self, record: RunRecord, name: str) -> bool:
        """Whether a record has that raw file; the file is not read."""
        return self.files.holds(record, name)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection; any error of the database becomes a `StoreError`."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except _UNREADABLE as error:
            raise _unreadable(self.place, error) from error

    def _files_of(self, place: StorePlace) -> RawFiles:
        if place.is_directory:
            return OwnFiles(self._layout)
        return SharedFiles(place.raw, self._layout.copies / store_name(self.id), self._listing)

    def _listing(self, record: RunRecord) -> Mapping[str, RawFile]:
        columns = (raw_files.c.run_id, raw_files.c.attempt, raw_files.c.name, raw_files.c.bytes, raw_files.c.sha256)
        asked = select(*columns).where(raw_files.c.run_id == record.run_id, raw_files.c.attempt == record.attempt)
        with self.reading() as connection:
            return {row.name: RawFile(*row) for row in connection.execute(asked)}


def open_store(where: Place) -> Store:
    """Open a store for reading only; an older format is migrated in memory, the files stay unchanged."""
    place = parse_store_url(where)
    store = _in_directory(place) if place.is_directory else _at_url(place)
    _ = store.plan  # raises here if the plan is damaged
    return store


def _at_url(place: StorePlace) -> Store:
    from tare.store import postgresql  # its driver is an extra

    engine = postgresql.connect(place, read_only=True)
    try:
        with engine.connect() as connection:
            if not postgresql.is_store(connection, place):
                raise StoreError(f"there is no store at {place}", hint="`tare run STUDY --store URL` makes one")
        return Store(place, engine)
    except _UNREADABLE as error:
        raise _unreadable(place, error) from error


def _unreadable(place: StorePlace, error: Exception) -> StoreError:
    if place.is_directory or not isinstance(error, SQLAlchemyError):
        where = place.directory
        return StoreError(
            f"the store {place} cannot be read: {_reason(error, where)}", hint=room_hint(error, where)
        )
    from tare.store import postgresql

    return postgresql.store_error(place, error)


def _in_directory(place: StorePlace) -> Store:
    path = place.directory
    layout = StoreLayout(path)
    must_be_plain_store(layout)
    if not layout.database.is_file():
        raise StoreError(f"there is no store at {path}", hint="`tare run STUDY --store DIR` makes one")
    engine = connect(layout.database, read_only=True)
    try:
        with engine.connect() as connection:
            version = check_format(connection, path)
            if 0 < version < FORMAT:
                engine = _migrated_copy(connection, path)
        return Store(place, engine)
    except _UNREADABLE as error:
        raise _unreadable(place, error) from error


def _migrated_copy(connection: Connection, path: Path) -> Engine:
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    cast("sqlite3.Connection", connection.connection.driver_connection).backup(copy)
    engine = create_engine("sqlite://", creator=lambda: copy, poolclass=StaticPool)
    begin_with(engine, "BEGIN")
    with engine.begin() as migrating:
        bring_up_to_date(migrating, path)
    return engine


def _reason(error: Exception, directory: Path) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return reason_of(error, directory).splitlines()[0]
