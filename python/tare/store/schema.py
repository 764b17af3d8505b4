"""The tables of a store, its migrations, and connections to a store's SQLite database."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    NullPool,
    String,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    select,
    update,
)
from sqlalchemy.dialects import sqlite

from tare.errors import StoreError
from tare.store.sqlite_errors import has_no_room

Step = Callable[[Connection], None]


FORMAT = 5
"""Version of a store's format, kept in SQLite's user_version; `MIGRATIONS` has a step for each."""
APPLICATION_ID = 0x74617265
"""SQLite's application_id of a store: "tare" in ASCII."""
_BUSY_S = 30.0
_WHOLE = Integer().with_variant(BigInteger(), "postgresql")
"""SQLite's integers have 64 bits already."""
metadata = MetaData()
study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("store_id", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("tare_version", String, nullable=False),
    Column("name", String, nullable=False),
    Column("scale", String, nullable=False),
    Column("seed", _WHOLE, nullable=False),
    Column("plan_digest", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("plan", Text, nullable=False),
    CheckConstraint("id = 1", name="one_study_a_store"),
)
facts = Table(
    "facts",
    metadata,
    Column("digest", String, primary_key=True),
    Column("body", Text, nullable=False),
)
runs = Table(
    "runs",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("run_index", Integer, nullable=False),
    Column("block", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("arm", String, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("failed_in", String),
    Column("reason", Text),
    Column("committed_at", Float, nullable=False),
    Column("host", String, ForeignKey("facts.digest"), nullable=False),
    Column("engine", String, ForeignKey("facts.digest")),
    Column("images", String, ForeignKey("facts.digest"), nullable=False),
    Column("setup", String, ForeignKey("facts.digest")),
    Column("effective", String, ForeignKey("facts.digest")),
    Column("digest", String, nullable=False),
    Column("record", Text, nullable=False),
)
raw_files = Table(
    "raw_files",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String, primary_key=True),
    Column("bytes", _WHOLE, nullable=False),
    Column("sha256", String, nullable=False),
    ForeignKeyConstraint(["run_id", "attempt"], ["runs.run_id", "runs.attempt"]),
)
endings = Table(
    "endings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("reason", String, nullable=False),
    Column("blocks", Integer, nullable=False),
    Column("machine_s", Float, nullable=False),
    Column("body", Text, nullable=False),
)


def _create(connection: Connection) -> None:
    metadata.create_all(connection)


def _add_endings(connection: Connection) -> None:
    """Migrate to format 2. Studies of format 1 made all of their blocks: their protocol had no target."""
    endings.create(connection, checkfirst=True)
    for row in connection.execute(select(study.c.id, study.c.plan)).all():
        plan = json.loads(row.plan)
        plan["study"]["protocol"]["target"] = None
        connection.execute(update(study).where(study.c.id == row.id).values(plan=json.dumps(plan)))


def _keep(connection: Connection) -> None:
    """Migrate to formats 3 and 4. Records got keys that older ones do not have; no table changed."""


def _share_setup(connection: Connection) -> None:
    """Migrate to format 5. Existing attempts keep these parts in their record; digests cover the whole record."""
    there = {column["name"] for column in inspect(connection).get_columns(runs.name)}
    for name in {"setup", "effective"} - there:
        connection.exec_driver_sql(f"ALTER TABLE runs ADD COLUMN {name} VARCHAR REFERENCES facts (digest)")


MIGRATIONS: Mapping[int, Step] = {0: _create, 1: _add_endings, 2: _keep, 3: _keep, 4: _share_setup}
"""Format → step that migrates a store to the next format; 0 is the empty database."""


def check_format(connection: Connection, where: Path) -> int:
    """Format of the store. Raises `StoreError` if it is no store of tare, or newer than this tare."""
    version = pragma(connection, "user_version")
    ours = pragma(connection, "application_id") == APPLICATION_ID
    empty = not ours and not version and not inspect(connection).get_table_names()
    if not ours and not empty:
        raise StoreError(f"{where} is an SQLite database, but not a store of tare", hint="choose another --store")
    if version > FORMAT:
        raise StoreError(
            f"{where} was written by a newer tare (format {version}, this one knows {FORMAT})", hint="update tare"
        )
    if connection.dialect.name == "sqlite" and (made := _not_plain(connection)) is not None:
        raise StoreError(
            f"{where} contains {made}, which tare does not make", hint="drop it, or do not use this store"
        )
    return version


def _not_plain(connection: Connection) -> str | None:
    """A part of an SQLite database that computes something when it is read or written; `None` if there is none.

    In somebody else's store, a view may take for ever to read, and a trigger changes what a tare writes there.
    """
    query = "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE '%VIRTUAL%'"
    for kind, name in connection.exec_driver_sql(query):
        return f"the {'virtual table' if kind == 'table' else kind} {name!r}"
    query = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE c.hidden"
    for table, column in connection.exec_driver_sql(query):
        return f"the computed column {table}.{column}"
    return None


def bring_up_to_date(connection: Connection, where: Path, steps: Mapping[int, Step] = MIGRATIONS) -> None:
    """Migrate inside the caller's transaction, so that a store has either format completely."""
    version = check_format(connection, where)
    for older in range(version, FORMAT):
        steps[older](connection)
    if version < FORMAT:
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")


Index("one_good_attempt_a_run", runs.c.run_id, unique=True, sqlite_where=runs.c.ok, postgresql_where=runs.c.ok)


def connect(path: Path, *, read_only: bool) -> Engine:
    """Connect to a store's database; each connection is closed when it is returned.

    Writing: WAL, synchronous=FULL (https://www.sqlite.org/wal.html), and transactions that begin at once, so that a
    migration's DDL is rolled back with the rest.
    """
    mode = "rwc" if not read_only else _AT_REST if _at_rest(path) else "ro"

    def open_database() -> sqlite3.Connection:
        database = _opened(path, mode)
        try:
            database.execute("PRAGMA foreign_keys = ON")
            database.execute("PRAGMA user_version" if read_only else "PRAGMA journal_mode = WAL")
            if not read_only:
                database.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error as error:
            database.close()
            if read_only and has_no_room(error, path.parent) and _is_whole(path):
                return _opened(path, _AT_REST)
            raise
        return database

    engine = create_engine("sqlite://", creator=open_database, poolclass=NullPool)
    begin_with(engine, "BEGIN" if read_only else "BEGIN IMMEDIATE")
    return engine


_AT_REST = "ro&immutable=1"


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=_BUSY_S, isolation_level=None)


def _at_rest(path: Path) -> bool:
    """Whether nobody writes the database and this process cannot either: someone else's store, a read-only medium.

    Even for reading, SQLite would create -wal and -shm files there
    (https://www.sqlite.org/wal.html#read_only_databases).
    """
    return not _beside(path, "wal").exists() and _is_whole(path) and not os.access(path.parent, os.W_OK)


def _is_whole(path: Path) -> bool:
    """Whether the database's own file has all that was committed, and nothing of a transaction that was not."""
    return not any(_has_content(_beside(path, what)) for what in ("wal", "journal"))


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _beside(path: Path, what: str) -> Path:
    """A file that SQLite keeps beside a database (https://www.sqlite.org/tempfiles.html)."""
    return path.with_name(f"{path.name}-{what}")


def begin_with(engine: Engine, statement: str) -> None:
    """Make SQLAlchemy's transactions begin with this statement (the driver's own transactions are off)."""

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)


def upsert(connection: Connection, table: Table) -> Any:
    """An insert that may handle existing rows, in the dialect of the database."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql  # slow to import

        return postgresql.insert(table)
    return sqlite.insert(table)


def pragma(connection: Connection, name: str) -> int:
    """A numeric pragma of the database."""
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
