"""Outlines of attempts: the fields that decide what is left to do, and that a page shows, without whole records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json
from sqlalchemy import Column, Connection, Integer, Label, Select, Text, func, literal_column, select
from sqlalchemy.engine import Row

from tare.protocols.pilot import BLOCKS
from tare.record.duet import DuetTimes
from tare.record.pilot import Choice, TurnChoice
from tare.record.run_record import TOGETHER, sharing
from tare.record.swap_halves import rate_of
from tare.run.resume import AttemptSummary, StateBuilder, StudyState, summary_of
from tare.store.read import Store, without_collector
from tare.store.rows import REFERENCES, Facts, from_row
from tare.store.schema import facts, runs

_Path = tuple[str, ...]
_DECIDING: tuple[_Path, ...] = (
    ("phases",),
    ("duet",),
    ("measurement", "throughput_per_s"),
    ("pilot",),
    ("emulated",),
    ("rotation", "arms"),
)
"""Paths in a record that decide what is left to do; the database extracts them, as a record may have megabytes."""
_SHOWN: tuple[_Path, ...] = (("measurement", "unit"), ("measurement", "latency", "p95_ms"), ("site",), ("notices",))
"""Further paths that a page shows."""
_KEYS: tuple[Column[Any], ...] = (runs.c.run_id, runs.c.attempt, runs.c.block, runs.c.arm, runs.c.ok)
_AT_ONCE = 1000
"""Rows that are read and parsed together: few enough to stay in the CPU's caches."""
_MOST_NAMED = 1000
"""Most names in one statement; a protocol message of PostgreSQL has at most 65535 parameters."""
_DUET: TypeAdapter[DuetTimes | None] = TypeAdapter(DuetTimes | None)
_CHOICE: TypeAdapter[Choice | TurnChoice | None] = TypeAdapter(Choice | TurnChoice | None)
_TOGETHER = frozenset(phase.value for phase in TOGETHER)


@dataclass(frozen=True, slots=True)
class Outline:
    """An attempt. `row`: its position in the order of commits; `committed_at`: seconds since the epoch."""

    row: int
    committed_at: float
    made: AttemptSummary
    attempt: int
    site: str | None
    unit: str | None
    latency_p95_ms: float | None
    reason: str | None
    notices: tuple[str, ...]


def state_of(store: Store) -> StudyState:
    """State of the study: everything made so far. Raises `StoreError`."""
    in_order = (_ROW,) if store.place.is_directory else _BY_TIME
    asked: Select[Any] = select(*_KEYS, _parts(store, _DECIDING)).order_by(*in_order)
    with store.reading() as connection, without_collector():
        pilot, builder = _pilot(connection), StateBuilder(StudyState())
        for rows in connection.execute(asked).partitions(_AT_ONCE):
            for row, parts in zip(rows, from_json(f"[{','.join([row[-1] for row in rows])}]"), strict=True):
                run_id, _, block, _, ok, _ = row
                phases, duet, rate, choice, emulated, arms = parts
                alone = duet is None and arms is None
                if ok and block > BLOCKS and alone and choice is None and not emulated:
                    took_s = sum([time["seconds"] for time in phases])
                    builder.note_good(run_id, took_s, None if rate is None else float(rate))
                else:
                    builder.note((_made(row, parts, pilot),))
        return builder.state


def outlines(store: Store, after: int = 0, seen: Collection[tuple[str, int]] = ()) -> tuple[Outline, ...]:
    """Attempts committed after that row, in the order of their commits. Raises `StoreError`.

    `seen`: (run, attempt) of the attempts up to that row. In a database that several tares write, the only order is
    the times of their clocks; there, attempts that are not in `seen` are new.
    """
    asked = select(*_KEYS, runs.c.reason, runs.c.committed_at, _parts(store, (*_DECIDING, *_SHOWN)))
    with store.reading() as connection, without_collector():
        if store.place.is_directory:
            numbered = [
                (row[-1], row)
                for row in connection.execute(asked.add_columns(_ROW).where(after < _ROW).order_by(_ROW))
            ]
        else:
            numbered = list(enumerate(_unseen(connection, asked, seen), start=after + 1))
        pilot = _pilot(connection) if any(row.block <= BLOCKS and row.ok for _, row in numbered) else {}
        return tuple(_outline(number, row, pilot) for number, row in numbered)


_ROW = literal_column("runs.rowid", Integer).label("row")
_BY_TIME = (runs.c.committed_at, runs.c.run_index, runs.c.attempt)


def _parts(store: Store, paths: Sequence[_Path]) -> Label[Any]:
    """Values at these paths of a record, as the text of a JSON array: numbers stay as they were written."""
    if store.place.is_directory:
        return func.json_extract(runs.c.record, *(f"$.{'.'.join(path)}" for path in paths)).label("parts")
    parts = ", ".join(f"CAST(runs.record AS json) #> '{{{','.join(path)}}}'" for path in paths)
    return literal_column(f"CAST(json_build_array({parts}) AS text)", Text).label("parts")


def _unseen(connection: Connection, asked: Select[Any], seen: Collection[tuple[str, int]]) -> list[Row[Any]]:
    if connection.execute(select(func.count()).select_from(runs)).scalar_one() == len(seen):
        return []
    asked = asked.order_by(*_BY_TIME)
    if seen:
        keys = connection.execute(select(runs.c.run_id, runs.c.attempt))
        new = {row.run_id for row in keys if (row.run_id, row.attempt) not in seen}
        if len(new) <= _MOST_NAMED:
            asked = asked.where(runs.c.run_id.in_(new))
    return [row for row in connection.execute(asked) if (row.run_id, row.attempt) not in seen]


def _pilot(connection: Connection) -> Mapping[tuple[str, int], AttemptSummary]:
    """Good runs of the first blocks: a pilot's choice needs their windows."""
    asked = select(runs.c.run_id, runs.c.attempt, runs.c.record, *(runs.c[part] for part in REFERENCES))
    whole = connection.execute(asked.where(runs.c.ok, runs.c.block <= BLOCKS)).mappings().all()
    named = {row[part] for row in whole for part in REFERENCES} - {None}
    bodies = connection.execute(select(facts).where(facts.c.digest.in_(named)))
    shared = Facts({row.digest: row.body for row in bodies})
    return {(row["run_id"], row["attempt"]): summary_of(from_row(row, shared)) for row in whole}


def _outline(number: int, row: Row[Any], pilot: Mapping[tuple[str, int], AttemptSummary]) -> Outline:
    parts = from_json(row.parts)
    unit, p95, site, notices = parts[len(_DECIDING) :]
    made = _made(row, parts, pilot)
    return Outline(number, row.committed_at, made, row.attempt, site, unit, p95, row.reason, tuple(notices or ()))


def _made(row: Row[Any], parts: Sequence[Any], pilot: Mapping[tuple[str, int], AttemptSummary]) -> AttemptSummary:
    """Make what `summary_of` does, from a row that starts with `_KEYS` and parts with `_DECIDING`."""
    run_id, attempt, block, arm, ok = row[: len(_KEYS)]
    if ok and block <= BLOCKS and (run_id, attempt) in pilot:
        return pilot[run_id, attempt]
    phases, duet_tree, rate, choice, emulated, arms = parts[: len(_DECIDING)]
    duet = _DUET.validate_python(duet_tree)
    seconds = sum(_share_of(time, sharing(duet, arms)) for time in phases)
    good_rate = rate_of(rate, duet) if ok else None
    chosen = _CHOICE.validate_python(choice)
    return AttemptSummary(run_id, arm, block, bool(ok), seconds, good_rate, None, chosen, tuple(emulated or ()))


def _share_of(time: Mapping[str, Any], runs_at_once: int) -> float:
    """Seconds of a phase that count for one attempt, as `RunRecord.share_of`."""
    seconds: float = time["seconds"]
    return seconds / runs_at_once if time["phase"] in _TOGETHER else seconds
