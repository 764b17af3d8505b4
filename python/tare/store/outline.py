"""Records without their bulk, for who only asks how a study stands: SQLite takes the large parts out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Integer, Label, func, literal_column, select, text

from tare.run.record import RunRecord
from tare.store.read import Store
from tare.store.schema import runs

_BULK = ("$.effective", "$.parity", "$.usage", "$.monitors", "$.snapshot", "$.measurement.histogram",
         "$.measurement.by_operation", "$.measurement.details", "$.measurement.windows", "$.nodes",
         "$.chronicle")  # fmt: skip
_ROW: Label[int] = literal_column("runs.rowid", Integer).label("row")
_LEAN = func.json_remove(runs.c.record, *_BULK)
_EMPTY: dict[str, Any] = {"host": {}, "engine": None, "images": {}, "effective": None, "parity": {}}


@dataclass(frozen=True)
class Outline:
    """An attempt as it is listed. `row`: its place in the order of commits; `committed_at`: since the epoch.

    `record` has neither facts nor settings read back, and no windows: nothing can be chosen by it after a pilot.
    """

    row: int
    committed_at: float
    record: RunRecord


def outlines(store: Store, after: int = 0) -> tuple[Outline, ...]:
    """The attempts that were committed after that row, in the order of their commits. Raises `StoreError`."""
    with store.reading() as connection:
        asked = select(_ROW, runs.c.committed_at, _LEAN.label("record")).order_by(_ROW)
        rows = connection.execute(asked.where(text("runs.rowid > :after").bindparams(after=after))).all()
        return tuple(
            Outline(row.row, row.committed_at, RunRecord.model_validate_json(json.dumps(_whole(row.record))))
            for row in rows
        )


def _whole(record: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(record)
    if isinstance(tree.get("measurement"), dict):
        tree["measurement"].setdefault("windows", [])
    return {**tree, **_EMPTY}
