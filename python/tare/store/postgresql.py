"""A store in a schema of a PostgreSQL database: connections, its format, and the server's errors as sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Float,
    Integer,
    MetaData,
    NullPool,
    String,
    Table,
    create_engine,
    func,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import OperationalError as ConnectionFault
from sqlalchemy.schema import CreateSchema

from tare.errors import EnvironmentLacks, StoreError
from tare.store.rows import Rows
from tare.store.schema import FORMAT, MIGRATIONS, metadata, runs
from tare.store_place import StorePlace

_CONNECT_S, _STATEMENT_S, _SILENT_S = 10, 120, 60
_own = MetaData()
store_format = Table(
    "store_format",
    _own,
    Column("id", Integer, primary_key=True),
    Column("format", Integer, nullable=False),
    CheckConstraint("id = 1", name="one_format_a_store"),
)
"""Format of the store, which SQLite keeps in user_version."""
claims = Table(
    "claims",
    _own,
    Column("block", Integer, primary_key=True, autoincrement=False),
    Column("holder", String, nullable=False),
    Column("tare", String, nullable=False),
    Column("until", Float, nullable=False),
)
"""Which tare makes which block; block 0 stands for all blocks. `until`: seconds of the server's clock."""


def connect(place: StorePlace, *, read_only: bool) -> Engine:
    """Connect to the store's schema; a reader's connection is closed after each use.

    Passwords come from libpq's own sources: PGPASSWORD, PGPASSFILE, a service file, certificates.
    """
    if place.database is None:
        raise ValueError("a directory is not a database")
    url = make_url(place.database)
    given = url.query.get("options", "")
    options = [given if isinstance(given, str) else " ".join(given), f"-csearch_path={place.name}",
               f"-cstatement_timeout={1000 * _STATEMENT_S}", f"-clock_timeout={1000 * _STATEMENT_S}",
               f"-cidle_in_transaction_session_timeout={1000 * _STATEMENT_S}"]  # fmt: skip
    if read_only:
        options.append("-cdefault_transaction_read_only=on")
    arguments: dict[str, Any] = {
        "connect_timeout": int(str(url.query.get("connect_timeout", _CONNECT_S))),
        "application_name": "tare",
        "options": " ".join(filter(None, options)),
        "keepalives_idle": _SILENT_S,
        "tcp_user_timeout": 1000 * _SILENT_S,
    }
    pool: dict[str, Any] = {"poolclass": NullPool} if read_only else {"pool_size": 2, "max_overflow": 4}
    try:
        return create_engine(
            url.difference_update_query(["options", "connect_timeout"]),
            connect_args=arguments,
            pool_pre_ping=True,
            **pool,
        )
    except (ImportError, NoSuchModuleError) as error:
        hint = "install tare-bench[fleet-store]"
        raise EnvironmentLacks(f"a store in PostgreSQL needs psycopg: {error}", hint=hint) from error


def is_store(connection: Connection, place: StorePlace) -> bool:
    """Whether the schema holds a store of this tare's format. Raises `StoreError` if it holds anything else."""
    version = _format_of(connection, place)
    if 0 < version < FORMAT:
        what = f"{place} was written by an older tare (format {version}, this one reads {FORMAT})"
        raise StoreError(what, hint="`tare run` with its study brings it up to date")
    return version > 0


def _format_of(connection: Connection, place: StorePlace) -> int:
    """Format of the store; 0 if the schema is empty.

    Raises `StoreError` for other content, or for a newer store.
    """
    tables = set(inspect(connection).get_table_names(schema=place.name))
    if not tables:
        return 0
    if store_format.name not in tables:
        hint = "name another one by store=NAME"
        raise StoreError(f"the schema {place.name} of {place} contains other things than a store", hint=hint)
    version = connection.execute(select(store_format.c.format)).scalar_one()
    if version > FORMAT:
        what = f"{place} was written by a newer tare (format {version}, this one knows {FORMAT})"
        raise StoreError(what, hint="update tare")
    return int(version)


def bring_up_to_date(connection: Connection, place: StorePlace) -> None:
    """Make or migrate the store in the caller's transaction; other tares that want to do so wait for its end."""
    lock(connection, place, "made")
    if version := _format_of(connection, place):
        for older in range(version, FORMAT):
            MIGRATIONS[older](connection)
        if version < FORMAT:
            connection.execute(update(store_format).values(format=FORMAT))
        return
    if not inspect(connection).has_schema(place.name):
        connection.execute(CreateSchema(place.name))
    _own.create_all(connection)
    metadata.create_all(connection)
    connection.execute(insert(store_format).values(id=1, format=FORMAT))


def lock(connection: Connection, place: StorePlace, what: str) -> None:
    """Take an advisory lock until the end of the transaction; others wait for it."""
    connection.execute(select(func.pg_advisory_xact_lock(_number(place, what))))


def committed(connection: Connection, rows: Sequence[Rows]) -> bool:
    """Whether all of these rows are stored unchanged, after a connection was lost during their commit."""
    for row in rows:
        key = (runs.c.run_id == row.run["run_id"]) & (runs.c.attempt == row.run["attempt"])
        if connection.execute(select(runs.c.digest).where(key)).scalar_one_or_none() != row.run["digest"]:
            return False
    return True


def is_lost(error: Exception) -> bool:
    """Whether a connection broke, or the server is stopping or starting: a later try may succeed."""
    return isinstance(error, DBAPIError) and (
        error.connection_invalidated
        or (isinstance(error, ConnectionFault) and not any(words in str(error.orig) for words in _FOR_GOOD))
    )


_FOR_GOOD = ("password", "authentication", "pg_hba.conf", "role ", "database ", "No space left", "could not extend")


def _number(place: StorePlace, what: str) -> int:
    """Number of an advisory lock (https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS)."""
    digest = hashlib.sha256(f"tare\0{place.name}\0{what}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


_HINTS: Mapping[str, str] = {
    "password": "put the right password into ~/.pgpass (PGPASSFILE) or PGPASSWORD",
    "authentication": "check the user of the URL and the server's pg_hba.conf",
    "no pg_hba.conf entry": "check the user of the URL and the server's pg_hba.conf",
    "role ": "check the user of the URL, or have the server's administrator create it",
    "database ": "create it with `createdb`, or correct the URL",
    '"store_format" does not exist': "have its owner grant this user USAGE on the schema and SELECT on its tables",
    "permission denied": "have its owner grant this user USAGE on the schema, or CREATE on the database to make it",
    "read-only transaction": "use the primary server, not a standby",
    "No space left": "free disk space at the server, then run the same command again",
    "could not extend file": "free disk space at the server, then run the same command again",
    "starting up": "wait until the server is up, then run the same command again",
    "too many": "raise max_connections at the server, or end other connections",
}
_OTHERWISE = "check that the server is up and reached from here, then run the same command again"


def store_error(place: StorePlace, error: Exception) -> StoreError:
    """An error of the server or its driver, with a way forward."""
    why = reason(error)
    hint = next((hint for words, hint in _HINTS.items() if words in why), _OTHERWISE)
    return StoreError(f"the store {place} cannot be used: {why}", hint=hint)


def reason(error: Exception) -> str:
    """First line of an error, without psycopg's lines about each address that it tried."""
    if not isinstance(error, SQLAlchemyError):
        return str(error).splitlines()[0]
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
