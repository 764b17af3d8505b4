"""Readable parts of a damaged store at a URL: database rows, and intact raw files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Engine, Select, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tare.errors import StoreError
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.store import postgresql
from tare.store.claims import makers
from tare.store.raw import RawFile, file_digest
from tare.store.read import open_store
from tare.store.saved import BEGIN_ANEW, Row, Saved, by_attempt, intact_bodies, only_study
from tare.store.schema import endings, facts, raw_files, runs, study
from tare.store_place import StorePlace

_DAMAGED = ("XX001", "XX002")
"""data_corrupted and index_corrupted (https://www.postgresql.org/docs/15/errcodes-appendix.html)."""


def read_at_url(place: StorePlace) -> Saved:
    """Read what can be read.

    Raises `StoreError` if the server or the study cannot be read, or if a tare writes the store.
    """
    store = open_store(place)
    with store.reading() as connection:
        at_work = makers(connection)
    if at_work:
        raise StoreError(
            f"the store {place} is being written by {' and '.join(at_work)}", hint="wait for it to end"
        )
    reading = _Reading(store.engine, store.plan)
    try:
        attempts = reading.of_runs(runs.c.run_id, select(runs))
        missing = reading.failed
        return Saved(
            header=only_study(reading.whole(select(study)), str(place)),
            attempts=attempts,
            bodies=intact_bodies(iter(reading.of_facts(attempts))),
            files=by_attempt(iter(reading.of_runs(raw_files.c.run_id, select(raw_files)))),
            ends=reading.whole(select(endings)),
            missing=missing,
            open=lambda record, file: _open(store.raw, record, file),
        )
    except SQLAlchemyError as error:
        if _is_damage(error):
            raise StoreError(f"the study of {place} cannot be read: {error}", hint=BEGIN_ANEW) from error
        raise postgresql.store_error(place, error) from error


class _Reading:
    """Runs each query in a connection of its own, as an error ends the connection."""

    def __init__(self, engine: Engine, plan: Plan) -> None:
        self._engine = engine
        self._runs = [run.id for run in plan.runs]
        self.failed = 0
        """Number of names with a row on a damaged page."""

    def whole(self, asked: Select[Any]) -> list[Row]:
        """Return all rows, or raise the database's error."""
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(asked).mappings()]

    def of_facts(self, attempts: Sequence[Row]) -> list[Row]:
        """Facts that attempts refer to."""
        named = {row[part] for row in attempts for part in ("host", "engine", "images", "setup", "effective")} - {
            None
        }
        return self._piecewise(facts.c.digest, select(facts), sorted(named))

    def of_runs(self, key: Any, asked: Select[Any]) -> list[Row]:
        """Rows that belong to a run of the plan."""
        return self._piecewise(key, asked, self._runs)

    def _piecewise(self, key: Any, asked: Select[Any], names: Sequence[str]) -> list[Row]:
        """Query all rows at once; if a page is damaged, query name by name and skip those on it."""
        try:
            return self.whole(asked)
        except DBAPIError as error:
            if not _is_damage(error):
                raise
        return list(self._each(key, asked, names))

    def _each(self, key: Any, asked: Select[Any], names: Sequence[str]) -> Iterator[Row]:
        for name in names:
            try:
                yield from self.whole(asked.where(key == name))
            except DBAPIError as error:
                if not _is_damage(error):
                    raise
                self.failed += 1


def _is_damage(error: SQLAlchemyError) -> bool:
    return getattr(getattr(error, "orig", None), "sqlstate", None) in _DAMAGED


def _open(raw: Callable[[RunRecord, str], Path], record: RunRecord, file: RawFile) -> BinaryIO:
    path = raw(record, file.name)
    if file_digest(path) != file.sha256:
        path.unlink()  # remove this machine's copy, not the original
        path = raw(record, file.name)
    return path.open("rb")
