"""Why a study ended is appended to its store, once for each time that it ended otherwise than before."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from tare.plan.model import Plan
from tare.run.ending import ArmWidth, Ending
from tare.store import open_store, resume_store
from tare.study.protocol_spec import InterleaveSpec

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
TARGET = Ending(
    reason="target", blocks=8, machine_s=100.0, target=0.02,
    arms={"b": ArmWidth(n=8, low=-0.01, high=0.02, half_width=0.015)},
)  # fmt: skip
BLOCKS = TARGET.model_copy(update={"reason": "blocks", "blocks": 20})


def test_an_ending_is_read_as_it_was_written(path: Path, plan: Plan) -> None:
    with resume_store(path, plan) as writer:
        assert writer.endings() == ()
        writer.end(TARGET)
    assert open_store(path).endings() == (TARGET,)


def test_the_same_ending_is_noted_once_and_another_is_appended(path: Path, plan: Plan) -> None:
    for ending in (TARGET, TARGET, BLOCKS, BLOCKS, TARGET):
        with resume_store(path, plan) as writer:
            writer.end(ending)
    assert open_store(path).endings() == (TARGET, BLOCKS, TARGET)


def test_columns_say_what_the_body_says(path: Path, plan: Plan) -> None:
    with resume_store(path, plan) as writer:
        writer.end(TARGET)
    database = sqlite3.connect(path / "store.sqlite")
    reason, blocks, machine_s, at = database.execute("SELECT reason, blocks, machine_s, at FROM endings").fetchone()
    database.close()
    assert (reason, blocks, machine_s) == ("target", 8, 100.0)
    assert at > 1_700_000_000


def test_a_study_of_format_1_made_all_its_blocks_and_still_does(tmp_path: Path) -> None:
    path = tmp_path / "store"
    (path / "raw").mkdir(parents=True)
    database = sqlite3.connect(path / "store.sqlite")
    database.executescript((GOLDEN / "store-1" / "store.sql").read_text())
    written: dict[str, Any] = json.loads(database.execute("SELECT plan FROM study").fetchone()[0])
    database.close()
    assert "target" not in written["study"]["protocol"]
    store = open_store(path)
    assert isinstance(store.plan.study.protocol, InterleaveSpec)
    assert store.plan.study.protocol.target is None
    assert store.plan.digest == written["digest"]
    assert store.endings() == ()
