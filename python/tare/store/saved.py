"""What could be read of a damaged store, and how its intact parts are written into a new store."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from tare.errors import StoreError
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.store.files import StoreLayout, attempt_name, sync_directory, sync_file
from tare.store.raw import RawFile, copy_as_committed
from tare.store.rows import Facts, digest_of, fault_of, from_row
from tare.store.schema import bring_up_to_date, connect, endings, facts, raw_files, runs, study

_UNREADABLE = (sqlite3.Error, ValidationError, ValueError, KeyError, TypeError, RecursionError, OSError)
"""Errors of a damaged page, a damaged record and a damaged file."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Repaired:
    """`kept`: attempts that are as they were committed; `lost`: the others, with the reason."""

    kept: tuple[str, ...]
    lost: Mapping[str, str]


@dataclass(frozen=True)
class Saved:
    """Readable content of a database. `missing`: number of attempts that could not be read.

    `open`: opens a raw file of an attempt, without following a link in the store. Raises `OSError`, `StoreError`.
    """

    header: Row
    attempts: Sequence[Row]
    bodies: Mapping[str, str]
    files: Mapping[tuple[str, int], Sequence[RawFile]]
    ends: Sequence[Row]
    missing: int
    open: Callable[[RunRecord, RawFile], BinaryIO]


BEGIN_ANEW = "nothing can be saved without it: use another store with `tare run --store`"


def only_study(rows: Sequence[Row], where: str) -> Row:
    """The row of the study. Raises `StoreError` if there is none."""
    if len(rows) != 1:
        raise StoreError(f"the study of {where} cannot be read", hint=BEGIN_ANEW)
    Plan.model_validate_json(rows[0]["plan"])
    return rows[0]


def intact_bodies(rows: Iterator[Row]) -> Mapping[str, str]:
    """Digest → body, of the facts that are as they were committed."""
    return {row["digest"]: row["body"] for row in rows if _is_intact(row)}


def by_attempt(rows: Iterator[Row]) -> Mapping[tuple[str, int], Sequence[RawFile]]:
    """(run, attempt) → its raw files, without rows of which damage left another kind of value.

    Raises `StoreError` for a name that leads out of the store.
    """
    files: dict[tuple[str, int], list[RawFile]] = {}
    for row in rows:
        if any(type(row[column]) is not kind for column, kind in _KINDS.items()):
            continue
        files.setdefault((row["run_id"], row["attempt"]), []).append(RawFile(**row))
    return files


_KINDS = {"run_id": str, "attempt": int, "name": str, "bytes": int, "sha256": str}
"""Columns of `raw_files`, with the kind of value that tare writes."""


def _is_intact(row: Row) -> bool:
    return isinstance(row["body"], str) and digest_of(row["body"]) == row["digest"]


def _record_or_fault(row: Row, shared: Facts) -> RunRecord | str:
    """The record as it was committed, or why it is not."""
    try:
        fault = fault_of(row, shared)
        return from_row(row, shared) if fault is None else f"its record {fault}"
    except _UNREADABLE:
        return "its record cannot be read"


def write_repaired(where: str, saved: Saved, new: StoreLayout) -> Repaired:
    """Write the new store: raw files first, as every commit does, then all rows in one transaction."""
    try:
        for directory in (new.root, new.raw, new.staging):
            directory.mkdir(parents=directory == new.root)
        new.lock.touch()
        kept, lost = _with_files(saved, new)
        sync_directory(new.raw)
        _write(saved, kept, new)
        sync_directory(new.root)
    except OSError as error:
        shutil.rmtree(new.root, ignore_errors=True)
        raise StoreError(
            f"{new.root} cannot be written: {error.strerror}",
            hint="name a directory with enough free space for the store",
        ) from error
    except IntegrityError as error:
        shutil.rmtree(new.root, ignore_errors=True)
        raise StoreError(f"a row of {where} is incomplete: {error.orig}", hint=BEGIN_ANEW) from error
    except BaseException:
        shutil.rmtree(new.root, ignore_errors=True)
        raise
    if saved.missing > 0:
        lost[f"{saved.missing} more"] = "the database cannot be read there"
    return Repaired(tuple(attempt_name(row["run_id"], row["attempt"]) for row in kept), lost)


def _with_files(saved: Saved, new: StoreLayout) -> tuple[list[Row], dict[str, str]]:
    """Copy the raw files; return rows of intact attempts, and why the others are lost."""
    kept: list[Row] = []
    lost: dict[str, str] = {}
    shared = Facts(saved.bodies)
    for row in saved.attempts:
        name, record = attempt_name(row["run_id"], row["attempt"]), _record_or_fault(row, shared)
        if isinstance(record, str):
            lost[name] = record
            continue
        files = _files_of(saved, record)
        unknown = next((each for each in record.raw if each not in {file.name for file in files}), None)
        if unknown is not None:
            lost[name] = f"the digest of its raw file {unknown} cannot be read"
        elif (why := _bring(saved, record, files, new.raw / name)) is not None:
            lost[name] = why
            shutil.rmtree(new.raw / name, ignore_errors=True)
        else:
            for path in (new.raw / name).rglob("*"):
                (sync_directory if path.is_dir() else sync_file)(path)
            sync_directory(new.raw / name)
            kept.append(row)
    return kept, lost


def _files_of(saved: Saved, record: RunRecord) -> Sequence[RawFile]:
    """The raw files that the record names, as the database lists them."""
    listed = saved.files.get((record.run_id, record.attempt), ())
    return [file for file in listed if file.name in record.raw]


def _bring(saved: Saved, record: RunRecord, files: Sequence[RawFile], to: Path) -> str | None:
    """Copy the raw files of an attempt into a new directory; return why it cannot be done, or `None`.

    Raises `OSError` if there is no room.
    """
    to.mkdir()
    for file in files:
        try:
            with saved.open(record, file) as source:
                if not copy_as_committed(source, to / file.name, file):
                    return f"its raw file {file.name} is not what was committed"
        except StoreError as error:
            return f"its raw file {file.name} cannot be read: {error.what}"
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise
            return f"its raw file {file.name} cannot be copied: {error.strerror or error}"
    return None


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def _write(saved: Saved, kept: Sequence[Row], new: StoreLayout) -> None:
    known = Facts(saved.bodies)
    files = [vars(file) for row in kept for file in _files_of(saved, from_row(row, known))]
    bodies = [{"digest": digest, "body": body} for digest, body in saved.bodies.items()]
    with connect(new.database, read_only=False).begin() as connection:
        bring_up_to_date(connection, new.root)
        for table, rows in (
            (study, [saved.header]), (facts, bodies), (runs, kept), (raw_files, files), (endings, saved.ends),
        ):  # fmt: skip
            if rows:
                connection.execute(insert(table), [{**row, **_flag(row)} for row in rows])


def _flag(row: Row) -> Row:
    """SQLite stores a truth value as a number."""
    return {"ok": bool(row["ok"])} if "ok" in row else {}
