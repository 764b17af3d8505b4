"""A database may compute something when it is read or written; tare's has tables and indexes only.

Found by attack.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tare.errors import StoreError
from tare.live.now import read_now
from tare.store import open_store, resume_store, verify
from tare.store.copying import copy
from tare.store.repair import repair

FOR_EVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
HARM = {
    "view 'runs'": (
        f"ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS {FOR_EVER} SELECT r.* FROM r, n WHERE n.x < 0;"
    ),
    "trigger 'faster'": (
        "CREATE TRIGGER faster AFTER INSERT ON runs BEGIN UPDATE runs SET record = replace(record, '1', '9'); END;"
    ),
    "virtual table 'more'": "CREATE VIRTUAL TABLE more USING fts5(x);",
    "computed column facts.more": "ALTER TABLE facts ADD COLUMN more AS (hex(zeroblob(1000000000)));",
}


def harmed(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path / "store.sqlite")) as database:
        database.executescript(statements)


@pytest.mark.parametrize("what", HARM)
def test_a_database_that_computes_is_refused(
    path: Path, plan: Any, committed: Any, tmp_path: Path, what: str
) -> None:
    assert committed.outcome.ok
    harmed(path, HARM[what])
    acts: list[Callable[[Path], object]] = [
        lambda store: open_store(store).records(),
        lambda store: copy(store, tmp_path / "copy"),
        lambda store: repair(store, tmp_path / "new"),
    ]
    for act in acts:
        with pytest.raises(StoreError, match=f"contains the {what}, which tare does not make"):
            act(path)
    with pytest.raises(StoreError, match="which tare does not make"), resume_store(path, plan):
        pytest.fail("it was written to")


def test_a_record_nested_too_deeply_is_a_store_error(path: Path, committed: Any, tmp_path: Path) -> None:
    deep = '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"
    with closing(sqlite3.connect(path / "store.sqlite")) as database, database:
        database.execute("UPDATE facts SET body = ?", (deep,))
    with pytest.raises(StoreError, match="cannot be read"):
        open_store(path).records()
    with pytest.raises(StoreError, match="cannot be read"):
        verify(open_store(path))
    with pytest.raises(StoreError, match="is not what was committed"):
        copy(path, tmp_path / "copy")
    assert repair(path, tmp_path / "new").kept == ()
    assert committed.outcome.ok


def test_a_fifo_in_place_of_the_status_keeps_no_page_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "now.json")
    seen: list[object] = []
    reader = threading.Thread(target=lambda: seen.append(read_now(tmp_path / "now.json")), daemon=True)
    reader.start()
    reader.join(60)
    assert seen == [None]
