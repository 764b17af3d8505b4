"""Whether a store is intact: every record readable and unchanged, every raw file present, nothing else."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import select

from tare.store.files import StoreLayout, attempt_name, raw_name
from tare.store.raw import RawFile, SharedFiles, file_digest
from tare.store.read import Store
from tare.store.rows import Facts, stored_digest
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
        changed = [row for row in rows if stored_digest(row, shared) != row["digest"]]
    planned = {run.id for run in store.plan.runs}
    good = Counter(record.run_id for record in records if record.outcome.ok)
    wrong = [
        f"the record of {attempt_name(row['run_id'], row['attempt'])} is not what was committed" for row in changed
    ]
    wrong += [f"{record.run_id} is not in the plan" for record in records if record.run_id not in planned]
    wrong += [f"{run_id} has {count} good attempts" for run_id, count in good.items() if count > 1]
    return wrong


def _raw(store: Store) -> list[str]:
    if isinstance(store.files, SharedFiles):
        with store.reading() as connection:
            there = connection.execute(select(raw_files).order_by(*raw_files.primary_key)).all()
        looked = store.files.check([RawFile(*row) for row in there])
        return [
            f"raw file {attempt_name(file.run_id, file.attempt)}/{file.name} {wrong}"
            for file, wrong in looked
            if wrong
        ]
    root = StoreLayout(store.path).raw
    with store.reading() as connection:
        attempts = {attempt_name(row.run_id, row.attempt) for row in connection.execute(select(runs))}
        files = connection.execute(select(raw_files)).all()
    wrong = [f"raw/{name} is missing" for name in sorted(attempts) if not (root / name).is_dir()]
    wrong += [
        f"raw/{path.name} belongs to no record" for path in sorted(root.iterdir()) if path.name not in attempts
    ]
    for row in files:
        path = root / attempt_name(row.run_id, row.attempt) / raw_name(str(row.name))
        if path.is_symlink() or not path.is_file():
            wrong.append(f"raw file {path.relative_to(root)} is missing")
        elif file_digest(path) != row.sha256:
            wrong.append(f"raw file {path.relative_to(root)} was changed")
    return wrong
