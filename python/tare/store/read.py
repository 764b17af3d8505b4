"""Reading a store, also while a study is writing it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, StaticPool, create_engine, select
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import StoreError
from tare.plan.model import Plan
from tare.run.ending import Ending
from tare.run.record import RunRecord
from tare.store.layout import StoreLayout, attempt_name
from tare.store.migrations import bring_up_to_date, check_format
from tare.store.rows import from_row
from tare.store.schema import FORMAT, begin_with, connect, endings, facts, runs, study

_UNREADABLE = (SQLAlchemyError, sqlite3.Error, ValidationError, ValueError, KeyError)
"""What a damaged database and damaged records in a sound one give."""


class Store:
    """One study's plan and the records made of it so far. Every call reads what is committed now."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self.engine = engine
        self._layout = StoreLayout(path)
        with self.reading() as connection:
            row = connection.execute(select(study)).mappings().one_or_none()
        if row is None:
            raise StoreError(f"{path} holds no study yet", hint="`tare run` writes one")
        self.id: str = row["store_id"]
        self.tare_version: str = row["tare_version"]
        self.plan = Plan.model_validate_json(row["plan"])

    def records(self) -> tuple[RunRecord, ...]:
        """Every attempt of every run, failed ones too, in the order of the plan and of the attempts."""
        with self.reading() as connection:
            rows = connection.execute(select(runs).order_by(runs.c.run_index, runs.c.attempt)).mappings().all()
            bodies = {row.digest: row.body for row in connection.execute(select(facts))}
            return tuple(from_row(dict(row), bodies) for row in rows)

    def endings(self) -> tuple[Ending, ...]:
        """Why `tare run` ended the study, in the order in which it did; more than one where it was gone on with."""
        with self.reading() as connection:
            rows = connection.execute(select(endings.c.body).order_by(endings.c.id)).all()
        return tuple(Ending.model_validate_json(row.body) for row in rows)

    def raw(self, record: RunRecord, name: str) -> Path:
        """Where a raw file of a record lies."""
        return self._layout.raw / attempt_name(record.run_id, record.attempt) / name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection; whatever SQLite has to say against it is a `StoreError`."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except _UNREADABLE as error:
            raise StoreError(f"the store {self.path} cannot be read: {_said(error)}") from error


def open_store(path: Path) -> Store:
    """Open a store for reading only; an older format is migrated in memory, the files stay as they are."""
    layout = StoreLayout(path)
    if not layout.database.is_file():
        raise StoreError(f"there is no store at {path}", hint="`tare run STUDY --store DIR` makes one")
    engine = connect(layout.database, read_only=True)
    try:
        with engine.connect() as connection:
            found = check_format(connection, path)
            if 0 < found < FORMAT:
                engine = _migrated_copy(connection, path)
        return Store(path, engine)
    except _UNREADABLE as error:
        raise StoreError(f"the store {path} cannot be read: {_said(error)}") from error


def _migrated_copy(connection: Connection, path: Path) -> Engine:
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    cast("sqlite3.Connection", connection.connection.driver_connection).backup(copy)
    engine = create_engine("sqlite://", creator=lambda: copy, poolclass=StaticPool)
    begin_with(engine, "BEGIN")
    with engine.begin() as migrating:
        bring_up_to_date(migrating, path)
    return engine


def _said(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
