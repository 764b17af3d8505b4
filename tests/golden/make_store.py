"""Write the golden store of the present format: run once a format, then never again.

    .venv/bin/python tests/golden/make_store.py

A golden store is a dump of SQL text, so that a change in it shows, and the records that must be read from it.
"""

from __future__ import annotations

import json
import runpy
import sqlite3
import tempfile
from pathlib import Path

from tare.run.ending import ArmWidth, Ending
from tare.store import open_store, resume_store
from tare.store.schema import APPLICATION_ID, FORMAT

HERE = Path(__file__).resolve().parent
MADE = runpy.run_path(str(HERE.parent / "unit" / "store" / "conftest.py"))
"""What the store's tests are filled with; their folder is no package."""


def main() -> None:
    """Refuses to write over a golden store that is there."""
    target = HERE / f"store-{FORMAT}"
    target.mkdir()
    plan, make_record = MADE["make_plan"](), MADE["make_record"]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "store"
        with resume_store(path, plan) as writer:
            second = make_record(plan, 1).model_copy(update={"emulated": ("sut",)})
            for record in (make_record(plan, 0, ok=False), make_record(plan, 0, attempt=2), second):
                MADE["stage"](writer, record)
                writer.commit(record)
            width = ArmWidth(n=1, low=None, high=None, half_width=None)
            writer.end(Ending(reason="blocks", blocks=1, machine_s=2.5, target=None, arms={"b": width}))
        records = open_store(path).records()
        database = sqlite3.connect(path / "store.sqlite")
        pragmas = [f"PRAGMA application_id = {APPLICATION_ID};", f"PRAGMA user_version = {FORMAT};"]
        (target / "store.sql").write_text("\n".join([*database.iterdump(), *pragmas]) + "\n")
        database.close()
    kept = [record.model_dump(mode="json") for record in records]
    (target / "records.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
