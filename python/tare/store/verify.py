"""Whether a store is intact: every record readable and unchanged, every raw file present, nothing else."""

from __future__ import annotations

import errno
import hashlib
from collections import Counter

from sqlalchemy import select

from tare.plain_files import open_plain
from tare.store.files import StoreLayout, attempt_name
from tare.store.raw import RawFile, SharedFiles
from tare.store.read import Store
from tare.store.rows import Facts, fault_of
from tare.store.schema import facts, raw_files, runs


def verify(store: Store) -> tuple[str, ...]:
    """Problems of the store, one sentence each; empty if there are none."""
    return (*_database(store), *_records(store), *_raw(store))


def _database(store: Store) -> list[str]:
    if not store.place.is_directory:
        return []  # PostgreSQL checks pages when it reads them, if set up by `initdb --data-checksums`
    with store.reading() as connection:
        problems = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    return [f"SQLite: {line}" for line in problems if line != "ok"]


def _records(store: Store) -> list[str]:
    records = store.records()
    with store.reading() as connection:
        rows = connection.execute(select(runs)).mappings().all()
        shared = Facts({row.digest: row.body for row in connection.execute(select(facts))})
        faults = [(attempt_name(row["run_id"], row["attempt"]), fault_of(row, shared)) for row in rows]
    planned = {run.id for run in store.plan.runs}
    good = Counter(record.run_id for record in records if record.outcome.ok)
    wrong = [f"the record of {name} {fault}" for name, fault in faults if fault is not None]
    wrong += [f"{record.run_id} is not in the plan" for record in records if record.run_id not in planned]
    wrong += [f"{run_id} has {count} good attempts" for run_id, count in good.items() if count > 1]
    return wrong


def _raw(store: Store) -> list[str]:
    with store.reading() as connection:
        attempts = {attempt_name(row.run_id, row.attempt) for row in connection.execute(select(runs))}
        listed = connection.execute(select(raw_files).order_by(*raw_files.primary_key)).all()
    files = [RawFile(*row) for row in listed]
    if isinstance(store.files, SharedFiles):
        return [
            f"raw file {attempt_name(file.run_id, file.attempt)}/{file.name} {fault}"
            for file, fault in store.files.check(files)
            if fault
        ]
    layout = StoreLayout(store.path)
    there = [layout.raw / name for name in sorted(attempts)]
    wrong = [f"raw/{path.name} is missing" for path in there if path.is_symlink() or not path.is_dir()]
    wrong += [
        f"raw/{path.name} belongs to no record"
        for path in sorted(layout.raw.iterdir())
        if path.name not in attempts
    ]
    for file in files:
        name = f"{attempt_name(file.run_id, file.attempt)}/{file.name}"
        if (fault := _fault(layout, name, file)) is not None:
            wrong.append(f"raw file {name} {fault}")
    return wrong


_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL)
"""Errors of `open_plain` without a file, or with a link or something else in its place."""


def _fault(layout: StoreLayout, name: str, file: RawFile) -> str | None:
    try:
        with open_plain(layout.root, f"{layout.raw.name}/{name}") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        return "is missing" if error.errno in _MISSING else f"cannot be read: {error.strerror}"
    return None if digest == file.sha256 else "was changed"
