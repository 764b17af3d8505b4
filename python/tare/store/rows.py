"""A record as rows and back: what repeats from run to run (host, engine, images) is kept once, by digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.run.record import RunRecord

SHARED = ("host", "engine", "images")
"""Parts of a record that are kept in the table `facts`."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Rows:
    """A record taken apart: the row of `runs` and, by digest, what it refers to in `facts`."""

    run: Mapping[str, Any]
    facts: Mapping[str, str]


def canonical(tree: object) -> str:
    """JSON that is the same for the same content: sorted keys, no blanks, no NaN."""
    return _CANONICAL.encode(tree)


def digest_of(text: str) -> str:
    """sha256 of a canonical text."""
    return hashlib.sha256(text.encode()).hexdigest()


def record_digest(record: RunRecord) -> str:
    """sha256 over the whole record as it was read: unchanged as long as not one figure in it has changed.

    What was not there when it was written is left out, so that keys that came with a later format change nothing.
    """
    return digest_of(canonical(record.model_dump(mode="json", exclude_unset=True)))


def stored_digest(row: Mapping[str, Any], bodies: Mapping[str, str]) -> str:
    """sha256 over the record as it lies in the store: keys that a later tare added to records are not in it."""
    return digest_of(canonical(_tree(row, bodies)))


def to_rows(record: RunRecord, committed_at: float) -> Rows:
    """Take a record apart."""
    tree = record.model_dump(mode="json")
    digest = digest_of(canonical(tree))
    shared = {part: tree.pop(part) for part in SHARED}
    bodies = {part: canonical(body) for part, body in shared.items() if body is not None}
    run = {
        "run_id": record.run_id,
        "attempt": record.attempt,
        "run_index": record.index,
        "block": record.block,
        "position": record.position,
        "arm": record.arm,
        "ok": record.outcome.ok,
        "failed_in": record.outcome.failed_in,
        "reason": record.outcome.reason,
        "committed_at": committed_at,
        "digest": digest,
        "record": canonical(tree),
        **{part: digest_of(bodies[part]) if part in bodies else None for part in SHARED},
    }
    return Rows(run=run, facts={digest_of(body): body for body in bodies.values()})


def from_row(row: Mapping[str, Any], bodies: Mapping[str, str]) -> RunRecord:
    """Put a record together again; `bodies`: the table `facts`, digest → body. `ValueError` where it is none."""
    if row["record"] is None:
        raise ValueError("a record is missing")
    shared = "".join(f'"{part}":{"null" if row[part] is None else bodies[row[part]]},' for part in SHARED)
    return RunRecord.model_validate_json(f"{{{shared}{row['record'].lstrip()[1:]}")


def _tree(row: Mapping[str, Any], bodies: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(row["record"])
    for part in SHARED:
        tree[part] = None if row[part] is None else json.loads(bodies[row[part]])
    return tree
