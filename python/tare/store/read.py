"""Reading a store, also while a study is writing it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from sqlalchemy import (
    Connection,
    Engine,
    Integer,
    Label,
    StaticPool,
    create_engine,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import StoreError
from tare.plan.model import Plan
from tare.run.ending import Ending
from tare.run.record import RunRecord
from tare.store.files import StoreLayout, attempt_name
from tare.store.rows import from_row
from tare.store.schema import (
    FORMAT,
    begin_with,
    bring_up_to_date,
    check_format,
    connect,
    endings,
    facts,
    runs,
    study,
)

_BULK = ("$.effective", "$.parity", "$.usage", "$.monitors", "$.snapshot", "$.measurement.histogram",
         "$.measurement.by_operation", "$.measurement.details", "$.measurement.windows", "$.nodes",
         "$.chronicle")  # fmt: skip
_ROW: Label[int] = literal_column("runs.rowid", Integer).label("row")
_LEAN = func.json_remove(runs.c.record, *_BULK)
_EMPTY: dict[str, Any] = {"host": {}, "engine": None, "images": {}, "effective": None, "parity": {}}


@dataclass(frozen=True)
class Outline:
    """An attempt as it is listed. `row`: its place in the order of commits; `committed_at`: since the epoch.

    `record` has neither facts nor settings read back, and no windows: nothing can be chosen by it after a pilot.
    """

    row: int
    committed_at: float
    record: RunRecord


def outlines(store: Store, after: int = 0) -> tuple[Outline, ...]:
    """The attempts that were committed after that row, in the order of their commits. Raises `StoreError`."""
    with store.reading() as connection:
        asked = select(_ROW, runs.c.committed_at, _LEAN.label("record")).order_by(_ROW)
        rows = connection.execute(asked.where(text("runs.rowid > :after").bindparams(after=after))).all()
        return tuple(
            Outline(row.row, row.committed_at, RunRecord.model_validate_json(json.dumps(_whole(row.record))))
            for row in rows
        )


def _whole(record: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(record)
    if isinstance(tree.get("measurement"), dict):
        tree["measurement"].setdefault("windows", [])
    return {**tree, **_EMPTY}


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
            raise StoreError(f"the store {self.path} cannot be read: {_reason(error)}") from error


def open_store(path: Path) -> Store:
    """Open a store for reading only; an older format is migrated in memory, the files stay as they are."""
    layout = StoreLayout(path)
    if not layout.database.is_file():
        raise StoreError(f"there is no store at {path}", hint="`tare run STUDY --store DIR` makes one")
    engine = connect(layout.database, read_only=True)
    try:
        with engine.connect() as connection:
            version = check_format(connection, path)
            if 0 < version < FORMAT:
                engine = _migrated_copy(connection, path)
        return Store(path, engine)
    except _UNREADABLE as error:
        raise StoreError(f"the store {path} cannot be read: {_reason(error)}") from error


def _migrated_copy(connection: Connection, path: Path) -> Engine:
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    cast("sqlite3.Connection", connection.connection.driver_connection).backup(copy)
    engine = create_engine("sqlite://", creator=lambda: copy, poolclass=StaticPool)
    begin_with(engine, "BEGIN")
    with engine.begin() as migrating:
        bring_up_to_date(migrating, path)
    return engine


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(getattr(error, "orig", None) or error).splitlines()[0]
