"""Save the intact parts of a damaged store into a new one. The damaged store is only read."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Table

from tare.errors import StoreError
from tare.plain_files import open_plain
from tare.store.files import StoreLayout, holder, must_be_plain_store
from tare.store.raw import OwnFiles
from tare.store.saved import BEGIN_ANEW, Repaired, Row, Saved, by_attempt, intact_bodies, only_study, write_repaired
from tare.store.schema import bring_up_to_date, connect, endings, facts, raw_files, runs, study
from tare.store_place import Place, parse_store_url


def repair(source: Place, target: Path) -> Repaired:
    """Copy the study of a store, and each intact attempt, into a new store in the directory `target`.

    An attempt whose record or raw file differs from what was committed is left out: `tare run` repeats its run.
    Raises `StoreError` if the study cannot be read, if a tare writes the store, or if `target` exists.
    """
    place = parse_store_url(source)
    if target.exists() or target.is_symlink():
        raise StoreError(f"{target} exists already", hint="name a new directory with --to")
    if not place.is_directory:
        from tare.store.repair_url import read_at_url  # its driver is an extra

        return write_repaired(str(place), read_at_url(place), StoreLayout(target))
    layout = StoreLayout(place.directory)
    must_be_plain_store(layout)
    if not layout.database.is_file():
        raise StoreError(f"there is no store at {place}", hint="name the directory that `tare run` wrote")
    if (writer := holder(layout.lock)) is not None:
        raise StoreError(f"the store {place} is being written by process {writer}", hint="wait for it to end")
    with tempfile.TemporaryDirectory(prefix="tare-repair-") as scratch:
        return write_repaired(str(place), _read(layout, _copied(layout, Path(scratch))), StoreLayout(target))


def _copied(layout: StoreLayout, scratch: Path) -> Path:
    """Copy the database with the log that a crash left, so that reading it changes nothing in the store."""
    for end in ("", "-wal"):
        name = layout.database.name + end
        try:
            with (
                suppress(FileNotFoundError),
                open_plain(layout.root, name) as source,
                (scratch / name).open("xb") as copy,
            ):
                shutil.copyfileobj(source, copy)
        except OSError as error:
            raise StoreError(
                f"{layout.root / name} cannot be copied: {error.strerror}",
                hint="check the disk, and the free space in TMPDIR",
            ) from error
    return scratch / layout.database.name


def _read(layout: StoreLayout, database: Path) -> Saved:
    try:
        with connect(database, read_only=False).begin() as connection:
            bring_up_to_date(connection, layout.root)
        with closing(sqlite3.connect(database)) as source:
            source.row_factory = sqlite3.Row
            attempts = list(_rows(source, runs))
            return Saved(
                header=only_study(list(_rows(source, study)), str(layout.root)),
                attempts=attempts,
                bodies=intact_bodies(_rows(source, facts)),
                files=by_attempt(_rows(source, raw_files)),
                ends=list(_rows(source, endings)),
                missing=_count(source, runs) - len(attempts),
                open=lambda record, file: OwnFiles(layout).open(record, file.name),
            )
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"the study of {layout.root} cannot be read: {error}", hint=BEGIN_ANEW) from error


def _rows(source: sqlite3.Connection, table: Table) -> Iterator[Row]:
    """Every readable row, queried one by one, so that a damaged page costs only its own rows."""
    names = [column.name for column in table.columns]
    for number in _numbers(source, table):
        try:
            row = source.execute(f"SELECT * FROM {table.name} WHERE rowid = ?", (number,)).fetchone()  # noqa: S608 - a table of ours
        except sqlite3.Error:
            continue
        if row is not None:
            yield {name: row[name] for name in names if name in row.keys()}  # noqa: SIM118 - a Row has no other


def _numbers(source: sqlite3.Connection, table: Table) -> Sequence[int]:
    """Row numbers; if the table cannot be scanned, all numbers that a row may have."""
    try:
        return [row[0] for row in source.execute(f"SELECT rowid FROM {table.name} NOT INDEXED")]  # noqa: S608 - a table of ours
    except sqlite3.Error:
        return range(1, _MOST_ROWS)


_MOST_ROWS = 300_000
"""More attempts than any store has; each costs one query."""


def _count(source: sqlite3.Connection, table: Table) -> int:
    """Number of rows by an index, which has pages of its own; 0 if it cannot be read either."""
    try:
        return int(source.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])  # noqa: S608 - a table of ours
    except sqlite3.Error:
        return 0
