"""Copy a store unchanged to another place: from a directory to a URL, back, or anywhere."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping, insert, select

from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.store.files import attempt_name
from tare.store.raw import RawFile, copy_as_committed
from tare.store.read import Store, open_store
from tare.store.resume import adopt_store
from tare.store.rows import REFERENCES, Facts, Rows, fault_of, from_row
from tare.store.schema import endings, facts, raw_files, runs, study
from tare.store.write import Writer
from tare.store_place import Place

_AT_ONCE = 50
"""Attempts in one transaction."""


@dataclass(frozen=True)
class Copied:
    """Number of attempts; `there`: number of those that an earlier call had copied."""

    attempts: int
    there: int


def copy(source: Place, target: Place) -> Copied:
    """Copy every attempt with its raw files and digests; a second call continues where the first ended.

    Raises `StoreError` if a part of the source is not as it was committed, or if the target holds another study.
    """
    opened = open_store(source)
    with opened.reading() as connection:
        header = dict(connection.execute(select(study)).mappings().one())
        rows = connection.execute(select(runs).order_by(runs.c.run_index, runs.c.attempt)).mappings().all()
        shared = Facts({row.digest: row.body for row in connection.execute(select(facts))})
        files: dict[tuple[str, int], list[RawFile]] = {}
        for row in connection.execute(select(raw_files)).mappings():
            files.setdefault((row["run_id"], row["attempt"]), []).append(RawFile(**row))
        ends = [dict(row) for row in connection.execute(select(endings).order_by(endings.c.id)).mappings()]
    with adopt_store(target, header) as writer:
        there = writer.attempts()
        lacking = [row for row in rows if (row["run_id"], row["attempt"]) not in there]
        for start in range(0, len(lacking), _AT_ONCE):
            _copy_some(opened, writer, lacking[start : start + _AT_ONCE], shared, files)
        if not writer.endings() and ends:
            with writer.engine.begin() as connection:
                connection.execute(insert(endings), ends)
    return Copied(len(rows), len(rows) - len(lacking))


def _copy_some(
    source: Store,
    writer: Writer,
    rows: Sequence[RowMapping],
    shared: Facts,
    files: Mapping[tuple[str, int], Sequence[RawFile]],
) -> None:
    taken: list[Rows] = []
    known: list[RawFile] = []
    names: list[str] = []
    for row in rows:
        record = _committed(source, row, shared)
        name, own = attempt_name(record.run_id, record.attempt), files.get((record.run_id, record.attempt), ())
        _stage(source, writer, record, name, own)
        digests = [row[part] for part in REFERENCES if row[part] is not None]
        taken.append(Rows(dict(row), {digest: shared.bodies[digest] for digest in digests}))
        known += own
        names.append(name)
    writer.files.keep(writer.staging, known, names)
    writer.insert(taken, known)


def _committed(source: Store, row: RowMapping, shared: Facts) -> RunRecord:
    """The record of a row. Raises `StoreError` if it cannot be read, or is not what was committed in this row."""
    what = f"the record of {attempt_name(row['run_id'], row['attempt'])}"
    try:
        if fault_of(row, shared) is not None:
            raise _damaged(source, what)
        return from_row(row, shared)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(source, what) from error


def _stage(source: Store, writer: Writer, record: RunRecord, name: str, files: Sequence[RawFile]) -> None:
    staged = writer.staging / name
    try:
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        for file in files:
            with source.files.open(record, file.name) as content:
                whole = copy_as_committed(content, staged / file.name, file)
            if not whole:
                raise _damaged(source, f"the raw file {name}/{file.name}")
    except OSError as error:
        raise StoreError(
            f"the raw files of {name} cannot be copied: {error}", hint="see `tare store verify`"
        ) from error


def _damaged(source: Store, what: str) -> StoreError:
    hint = "`tare store verify` lists all that is damaged; `tare store repair` saves the rest of a directory"
    return StoreError(f"{what} in {source.place} is not what was committed", hint=hint)
