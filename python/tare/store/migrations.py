"""From an older format of the store to this one, a step a format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from sqlalchemy import Connection, inspect, select, update

from tare.errors import StoreError
from tare.store.schema import APPLICATION_ID, FORMAT, endings, metadata, pragma, study

Step = Callable[[Connection], None]


def _create(connection: Connection) -> None:
    metadata.create_all(connection)


def _add_endings(connection: Connection) -> None:
    """To format 2. A study of format 1 made all its blocks without a look: its protocol had no target."""
    endings.create(connection, checkfirst=True)
    for row in connection.execute(select(study.c.id, study.c.plan)).all():
        plan = json.loads(row.plan)
        plan["study"]["protocol"]["target"] = None
        connection.execute(update(study).where(study.c.id == row.id).values(plan=json.dumps(plan)))


def _keep(connection: Connection) -> None:
    """To formats 3 and 4. Records got keys that older ones lack and need not have; no table changed."""


MIGRATIONS: Mapping[int, Step] = {0: _create, 1: _add_endings, 2: _keep, 3: _keep}
"""Format → the step that brings a store of it to the next; 0 is the empty database."""


def check_format(connection: Connection, where: Path) -> int:
    """The store's format; `StoreError` where it is no store of ours or newer than this tare."""
    found = pragma(connection, "user_version")
    ours = pragma(connection, "application_id") == APPLICATION_ID
    empty = not ours and not found and not inspect(connection).get_table_names()
    if not ours and not empty:
        raise StoreError(f"{where} is an SQLite database, but no store of tare's", hint="choose another --store")
    if found > FORMAT:
        raise StoreError(
            f"{where} was written by a newer tare (format {found}, this one knows {FORMAT})", hint="update tare"
        )
    return found


def bring_up_to_date(connection: Connection, where: Path, steps: Mapping[int, Step] = MIGRATIONS) -> None:
    """Migrate inside the caller's transaction, so that a store is of one format or the other."""
    found = check_format(connection, where)
    for older in range(found, FORMAT):
        steps[older](connection)
    if found < FORMAT:
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")
