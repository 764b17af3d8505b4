"""Attempts as they are listed: what decides what is left to do, and what a page shows, without whole records."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, Select, Text, func, literal_column, select
from sqlalchemy.engine import Row

from tare.protocols.pilot import BLOCKS
from tare.run.duet.swap import rate_of
from tare.run.record import TOGETHER
from tare.run.resume import Made, StudyState, made_of
from tare.store.read import Store, uncollected
from tare.store.rows import REFERENCES, Facts, from_row
from tare.store.schema import facts, runs

_PATHS = (
    ("phases",),
    ("duet",),
    ("measurement", "throughput_per_s"),
    ("measurement", "unit"),
    ("measurement", "latency", "p95_ms"),
    ("site",),
    ("pilot",),
    ("emulated",),
    ("notices",),
)
"""Of a record; read by the database, since a record may have megabytes."""
_COLUMNS = (
    runs.c.run_id, runs.c.attempt, runs.c.block, runs.c.arm, runs.c.ok, runs.c.reason, runs.c.committed_at,
)  # fmt: skip
_MOST_NAMED = 1000
"""In one statement; a protocol message of PostgreSQL has 65535 parameters at most."""
_TOGETHER = frozenset(phase.value for phase in TOGETHER)


@dataclass(frozen=True, slots=True)
class Outline:
    """An attempt. `row`: its place in the order of commits; `committed_at`: since the epoch."""

    row: int
    committed_at: float
    made: Made
    attempt: int
    site: str | None
    unit: str | None
    latency_p95_ms: float | None
    reason: str | None
    notices: tuple[str, ...]


def state_of(store: Store) -> StudyState:
    """What was made so far. Raises `StoreError`."""
    return StudyState().noting(outline.made for outline in outlines(store))


def outlines(store: Store, after: int = 0, seen: Collection[tuple[str, int]] = ()) -> tuple[Outline, ...]:
    """The attempts that were committed after that row, in the order of their commits. Raises `StoreError`.

    `seen`: run and number of those up to that row. A database that several tares write has no order but its times,
    which their clocks tell; there what is not in `seen` is new.
    """
    with store.reading() as connection, uncollected():
        if store.place.is_directory:
            numbered = [(row.row, row) for row in connection.execute(_of_sqlite(after))]
        else:
            numbered = list(enumerate(_of_postgresql(connection, seen), start=after + 1))
        pilot = _pilot(connection, [row for _, row in numbered])
        return tuple(_outline(number, row, pilot) for number, row in numbered)


def _of_sqlite(after: int) -> Select[Any]:
    row = literal_column("runs.rowid", Integer).label("row")
    paths = (f"$.{'.'.join(path)}" for path in _PATHS)
    asked = select(row, *_COLUMNS, func.json_extract(runs.c.record, *paths).label("parts"))
    return asked.where(row > after).order_by(row)


def _of_postgresql(connection: Connection, seen: Collection[tuple[str, int]]) -> list[Row[Any]]:
    if connection.execute(select(func.count()).select_from(runs)).scalar_one() == len(seen):
        return []
    parts = ", ".join(f"CAST(runs.record AS json) #> '{{{','.join(path)}}}'" for path in _PATHS)
    column = literal_column(f"CAST(json_build_array({parts}) AS text)", Text).label("parts")
    asked = select(*_COLUMNS, column).order_by(runs.c.committed_at, runs.c.run_index, runs.c.attempt)
    if seen:
        keys = connection.execute(select(runs.c.run_id, runs.c.attempt))
        new = {row.run_id for row in keys if (row.run_id, row.attempt) not in seen}
        if len(new) <= _MOST_NAMED:
            asked = asked.where(runs.c.run_id.in_(new))
    return [row for row in connection.execute(asked) if (row.run_id, row.attempt) not in seen]


def _pilot(connection: Connection, rows: Sequence[Row[Any]]) -> Mapping[tuple[str, int], Made]:
    """Good runs of the first blocks, of which a choice needs the windows."""
    wanted = {(row.run_id, row.attempt) for row in rows if row.ok and row.block <= BLOCKS}
    if not wanted:
        return {}
    asked = select(runs.c.run_id, runs.c.attempt, runs.c.record, *(runs.c[part] for part in REFERENCES))
    whole = connection.execute(asked.where(runs.c.ok, runs.c.block <= BLOCKS)).mappings().all()
    named = {row[part] for row in whole for part in REFERENCES} - {None}
    bodies = connection.execute(select(facts).where(facts.c.digest.in_(named)))
    shared = Facts({row.digest: row.body for row in bodies})
    return {
        (row["run_id"], row["attempt"]): made_of(from_row(row, shared))
        for row in whole
        if (row["run_id"], row["attempt"]) in wanted
    }


def _outline(number: int, row: Row[Any], pilot: Mapping[tuple[str, int], Made]) -> Outline:
    phases, duet, rate, unit, p95, site, choice, emulated, notices = json.loads(row.parts)
    made = pilot.get((row.run_id, row.attempt)) or Made(
        row.run_id,
        row.arm,
        row.block,
        bool(row.ok),
        sum(_share_of(time, duet) for time in phases),
        rate_of(rate, duet) if row.ok else None,
        None,
        choice,
        tuple(emulated or ()),
    )
    return Outline(number, row.committed_at, made, row.attempt, site, unit, p95, row.reason, tuple(notices or ()))


def _share_of(time: Mapping[str, Any], duet: Mapping[str, Any] | None) -> float:
    """As `RunRecord.share_of`."""
    seconds: float = time["seconds"]
    return seconds / 2 if duet is not None and time["phase"] in _TOGETHER else seconds
