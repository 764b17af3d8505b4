"""Save what is whole of a damaged store into a new one. The damaged one is only read."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Table, insert
from sqlalchemy.exc import IntegrityError

from tare.errors import StoreError
from tare.plan.model import Plan
from tare.store.files import StoreLayout, attempt_name, holder, sync_directory, sync_file
from tare.store.raw import file_digest
from tare.store.rows import digest_of, from_row, stored_digest
from tare.store.schema import bring_up_to_date, connect, endings, facts, raw_files, runs, study

_UNREADABLE = (sqlite3.Error, ValidationError, ValueError, KeyError, TypeError, OSError)
"""What a damaged page, a damaged record and a damaged file give."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Repaired:
    """`kept`: attempts that are as they were committed; `lost`: the others, with why."""

    kept: tuple[str, ...]
    lost: Mapping[str, str]


def repair(path: Path, target: Path) -> Repaired:
    """Copy the study of the store at `path`, and each attempt that is whole, into a new store at `target`.

    An attempt whose record or raw file is not what was committed is left out: `tare run` makes its run again.
    Raises `StoreError` where the study cannot be read, where a tare writes the store, and where `target` exists.
    """
    layout = StoreLayout(path)
    if not layout.database.is_file():
        raise StoreError(f"there is no store at {path}", hint="name the directory that `tare run` wrote")
    if (writer := holder(layout.lock)) is not None:
        raise StoreError(f"the store {path} is being written by process {writer}", hint="wait for it to end")
    if target.exists() or target.is_symlink():
        raise StoreError(f"{target} exists already", hint="name a new directory with --to")
    with tempfile.TemporaryDirectory(prefix="tare-repair-") as scratch:
        return _saved(layout, _copied(layout, Path(scratch)), StoreLayout(target))


def _copied(layout: StoreLayout, scratch: Path) -> Path:
    """The database with what a crash left in its log, so that reading it changes nothing in the store."""
    for end in ("", "-wal"):
        source = layout.database.with_name(layout.database.name + end)
        if source.is_file():
            shutil.copyfile(source, scratch / source.name)
    return scratch / layout.database.name


def _saved(layout: StoreLayout, database: Path, new: StoreLayout) -> Repaired:
    try:
        with connect(database, read_only=False).begin() as connection:
            bring_up_to_date(connection, layout.root)
        with closing(sqlite3.connect(database)) as source:
            source.row_factory = sqlite3.Row
            header = _study(source, layout)
            bodies = {row["digest"]: row["body"] for row in _rows(source, facts) if _is_whole(row)}
            attempts = list(_rows(source, runs))
            files = list(_rows(source, raw_files))
            ends = list(_rows(source, endings))
            missing = _count(source, runs) - len(attempts)
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"the study of {layout.root} cannot be read: {error}", hint=_BEGIN_ANEW) from error
    lost = {attempt_name(row["run_id"], row["attempt"]): _why_lost(layout, row, bodies, files) for row in attempts}
    kept = [row for row in attempts if lost[attempt_name(row["run_id"], row["attempt"])] is None]
    reasons = {name: why for name, why in lost.items() if why is not None}
    if missing > 0:
        reasons[f"{missing} more"] = "the database cannot be read there"
    _write(layout, new, {"study": [header], "endings": ends, "runs": kept, "facts": bodies, "raw_files": files})
    return Repaired(tuple(attempt_name(row["run_id"], row["attempt"]) for row in kept), reasons)


_BEGIN_ANEW = "nothing can be saved without it: use another store with `tare run --store`"


def _study(source: sqlite3.Connection, layout: StoreLayout) -> Row:
    rows = list(_rows(source, study))
    if len(rows) != 1:
        raise StoreError(f"the study of {layout.root} cannot be read", hint=_BEGIN_ANEW)
    Plan.model_validate_json(rows[0]["plan"])
    return rows[0]


def _rows(source: sqlite3.Connection, table: Table) -> Iterator[Row]:
    """Each row that can be read, asked for one by one: a damaged page costs what lies on it alone."""
    names = [column.name for column in table.columns]
    for number in _numbers(source, table):
        try:
            row = source.execute(f"SELECT * FROM {table.name} WHERE rowid = ?", (number,)).fetchone()  # noqa: S608 - a table of ours
        except sqlite3.Error:
            continue
        if row is not None:
            yield {name: row[name] for name in names if name in row.keys()}  # noqa: SIM118 - a Row has no other


def _numbers(source: sqlite3.Connection, table: Table) -> Sequence[int]:
    """Numbers of the rows; where the table cannot be walked, as many as its largest number may be."""
    try:
        return [row[0] for row in source.execute(f"SELECT rowid FROM {table.name} NOT INDEXED")]  # noqa: S608 - a table of ours
    except sqlite3.Error:
        return range(1, _MOST_ROWS)


_MOST_ROWS = 20_000
"""More attempts than a store has; each costs one look."""


def _count(source: sqlite3.Connection, table: Table) -> int:
    """By an index, which lies on other pages than the rows; 0 where that cannot be read either."""
    try:
        return int(source.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])  # noqa: S608 - a table of ours
    except sqlite3.Error:
        return 0


def _is_whole(row: Row) -> bool:
    return isinstance(row["body"], str) and digest_of(row["body"]) == row["digest"]


def _why_lost(layout: StoreLayout, row: Row, bodies: Mapping[str, str], files: Sequence[Row]) -> str | None:
    """Why an attempt is not what was committed; `None` where it is."""
    try:
        if stored_digest(row, bodies) != row["digest"]:
            return "its record is not what was committed"
        record = from_row(row, bodies)
    except _UNREADABLE:
        return "its record cannot be read"
    known = {
        each["name"]: each for each in files if (each["run_id"], each["attempt"]) == (row["run_id"], row["attempt"])
    }
    for name in record.raw:
        if name not in known:
            return f"the digest of its raw file {name} cannot be read"
        path = layout.raw / attempt_name(row["run_id"], row["attempt"]) / name
        try:
            if path.is_symlink() or file_digest(path) != known[name]["sha256"]:
                return f"its raw file {name} is not what was committed"
        except OSError as error:
            return f"its raw file {name} cannot be read: {error.strerror}"
    return None


def _write(layout: StoreLayout, new: StoreLayout, kept: Mapping[str, Any]) -> None:
    """The raw files first, as every commit does, then all rows in one transaction."""
    try:
        for directory in (new.root, new.raw, new.staging):
            directory.mkdir(parents=directory == new.root)
        new.lock.touch()
        for row in kept["runs"]:
            name = attempt_name(row["run_id"], row["attempt"])
            shutil.copytree(layout.raw / name, new.raw / name, symlinks=True)
            for path in (new.raw / name).rglob("*"):
                (sync_directory if path.is_dir() else sync_file)(path)
            sync_directory(new.raw / name)
        sync_directory(new.raw)
        names = {(row["run_id"], row["attempt"]) for row in kept["runs"]}
        files = [row for row in kept["raw_files"] if (row["run_id"], row["attempt"]) in names]
        bodies = [{"digest": digest, "body": body} for digest, body in kept["facts"].items()]
        engine = connect(new.database, read_only=False)
        with engine.begin() as connection:
            bring_up_to_date(connection, new.root)
            for table, rows in (
                (study, kept["study"]), (facts, bodies), (runs, kept["runs"]), (raw_files, files),
                (endings, kept["endings"]),
            ):  # fmt: skip
                if rows:
                    connection.execute(insert(table), [{**row, **_flag(row)} for row in rows])
        sync_directory(new.root)
    except OSError as error:
        shutil.rmtree(new.root, ignore_errors=True)
        raise StoreError(
            f"{new.root} cannot be written: {error.strerror}", hint="name a directory with room for the store"
        ) from error
    except IntegrityError as error:
        shutil.rmtree(new.root, ignore_errors=True)
        raise StoreError(f"a row of {layout.root} lacks what it needs: {error.orig}", hint=_BEGIN_ANEW) from error


def _flag(row: Row) -> Row:
    """SQLite keeps truth as a number."""
    return {"ok": bool(row["ok"])} if "ok" in row else {}
