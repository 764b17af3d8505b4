"""Begin or continue the one study of a store: lock the store and remove leftovers of a crash."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pydantic import ValidationError
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import StoreError
from tare.plan.extension import changes_between, extends
from tare.plan.model import Plan
from tare.sites.layout import make_directory
from tare.store.files import StoreLayout, attempt_name, held, must_be_plain_store, sync_directory
from tare.store.raw import file_system
from tare.store.schema import bring_up_to_date, connect, study
from tare.store.sqlite_errors import reason_of, room_hint
from tare.store.write import Writer
from tare.store_place import Place, StorePlace, parse_store_url
from tare.version import __version__


@contextmanager
def resume_store(where: Place, plan: Plan) -> Iterator[Writer]:
    """Hold the store for this plan; make it if there is none, and remove leftovers of a crash first."""
    place = parse_store_url(where)
    with _held(place, lambda connection: _enrol(connection, place, plan)) as writer:
        yield writer


@contextmanager
def adopt_store(where: Place, header: Mapping[str, Any]) -> Iterator[Writer]:
    """Hold a store whose row of `study` is, or becomes, the one of another store."""
    place = parse_store_url(where)
    with _held(place, lambda connection: _adopt(connection, place, header)) as writer:
        writer.alone()
        yield writer


Enrol = Callable[[Connection], None]


@contextmanager
def _held(place: StorePlace, enrol: Enrol) -> Iterator[Writer]:
    layout = StoreLayout(place.directory)
    _make_directory(layout)
    with held(layout.lock):
        if not place.is_directory:
            with _at_url(place, layout, enrol) as writer:
                yield writer
            return
        engine = connect(layout.database, read_only=False)
        try:
            with engine.begin() as connection:
                bring_up_to_date(connection, layout.root)
                enrol(connection)
            writer = Writer(place, engine)
            _drop_leftovers(writer, layout)
        except (SQLAlchemyError, sqlite3.Error, OSError, ValidationError) as error:
            raise StoreError(
                f"the store {place} cannot be opened: {reason_of(error, layout.root)}",
                hint=room_hint(error, layout.root),
            ) from error
        yield writer


@contextmanager
def _at_url(place: StorePlace, layout: StoreLayout, enrol: Enrol) -> Iterator[Writer]:
    from tare.store import postgresql  # its driver is an extra
    from tare.store.shared_writer import SharedWriter

    engine = postgresql.connect(place, read_only=False)
    try:
        file_system(place.raw)
        with engine.begin() as connection:
            postgresql.bring_up_to_date(connection, place)
            enrol(connection)
        for leftover in layout.staging.iterdir():
            shutil.rmtree(leftover)
        with SharedWriter(place, engine).at_work() as writer:
            yield writer
    except (SQLAlchemyError, ValidationError) as error:
        raise postgresql.store_error(place, error) from error
    finally:
        engine.dispose()


def _make_directory(layout: StoreLayout) -> None:
    """Raises `StoreError` for links: somebody else's store would have other files written or removed by them."""
    must_be_plain_store(layout)
    try:
        if layout.root.is_dir() and not layout.lock.exists() and not _half_made(layout):
            raise StoreError(
                f"{layout.root} is a directory with other content, not a store",
                hint="give --store a new directory",
            )
        make_directory(layout.root.parent)
        for directory in (layout.root, layout.raw, layout.staging):
            directory.mkdir(parents=True, exist_ok=True)
        sync_directory(layout.root)
        sync_directory(layout.root.parent)
    except OSError as error:
        raise StoreError(f"the store {layout.root} cannot be made: {error.strerror}") from error


def _half_made(layout: StoreLayout) -> bool:
    """Whether a directory without a lock is empty, or a store whose creation was interrupted by a crash."""
    inside = {path.name for path in layout.root.iterdir()}
    database = {f"{layout.database.name}{end}" for end in ("", "-journal", "-wal", "-shm")}
    if inside - {layout.raw.name, layout.staging.name, *database}:
        return False
    kept = [path for path in (layout.raw, layout.staging) if path.is_dir() and any(path.iterdir())]
    return not kept or layout.database.is_file()


def _adopt(connection: Connection, place: StorePlace, header: Mapping[str, Any]) -> None:
    there = connection.execute(select(study.c.store_id)).scalar_one_or_none()
    if there is None:
        connection.execute(insert(study).values(**header))
    elif there != header["store_id"]:
        raise StoreError(f"{place} holds another study", hint="name a place without a store")


def _enrol(connection: Connection, place: StorePlace, plan: Plan) -> None:
    """Write the study into a new store; refuse a store of another plan, unless this plan only raises its cap."""
    row = connection.execute(select(study)).mappings().one_or_none()
    if row is None:
        connection.execute(
            insert(study).values(
                id=1,
                store_id=uuid4().hex,
                created_at=time.time(),
                tare_version=__version__,
                name=plan.study.name,
                scale=plan.study.scale,
                seed=plan.seed,
                plan_digest=plan.digest,
                text=plan.study.text,
                plan=plan.model_dump_json(),
            )
        )
    elif row["plan_digest"] != plan.digest:
        _extend(connection, place, Plan.model_validate_json(row["plan"]), plan)


def _extend(connection: Connection, place: StorePlace, was: Plan, now: Plan) -> None:
    """Replace the stored plan by one with a higher cap; records keep the digest of their own plan."""
    if not extends(was, now):
        only = "" if now.study.imported else "; only a cap may be raised"
        raise StoreError(
            f"the store {place} belongs to another plan: {changes_between(was, now)}",
            hint=f"use another store with --store{only}",
        )
    row = {"plan_digest": now.digest, "text": now.study.text, "plan": now.model_dump_json()}
    connection.execute(update(study).where(study.c.id == 1).values(row))


def _drop_leftovers(writer: Writer, layout: StoreLayout) -> None:
    """Remove what an interrupted commit left: staged files, and raw directories that no record names."""
    recorded = {attempt_name(run, attempt) for run, attempt in writer.attempts()}
    for leftover in layout.staging.iterdir():
        shutil.rmtree(leftover)
    for name in set(os.listdir(layout.raw)) - recorded:  # noqa: PTH208 - names, of which there may be 100,000
        shutil.rmtree(layout.raw / name)
