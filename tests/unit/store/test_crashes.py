"""A store opens whole, or up to its last run, whatever a crash left of it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.store.conftest import make_plan
from tests.unit.store.crashes import Crash, Op, left_by, promised, recorded

from tare.store import open_store, resume_store, verify

_PROGRAM = """
import sys
from pathlib import Path
from tests.unit.store.conftest import make_plan, make_record, stage
from tare.store import resume_store
plan = make_plan()
for session in ((0, 1), (2, 3)):
    with resume_store(Path(sys.argv[1]), plan) as writer:
        for index in session:
            record = make_record(plan, index)
            stage(writer, record, "output\\n" * 500)
            writer.commit(record)
            sys.stdout.write(f"committed {record.run_id}\\n")
            sys.stdout.flush()
"""
QUICK = 20

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="no strace to record what is written")


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> list[Op]:
    place = tmp_path_factory.mktemp("recorded")
    (place / "store").mkdir()
    results = recorded(_PROGRAM, place / "store", place / "log")
    assert sum(op.kind == "mark" for op in results) == 4
    assert {op.kind for op in results} >= {"data", "name", "gone", "sync", "mark"}
    return results


def wrong(ops: Sequence[Op], crash: Crash, place: Path) -> str | None:
    """What tare makes of the store after that crash, where it is not what it promised."""
    left_by(ops, crash, place)
    plan = make_plan()
    with resume_store(place, plan) as writer:
        run_ids = [record.run_id for record in writer.records()]
    if run_ids != [run.id for run in plan.runs[: len(run_ids)]]:
        return f"{crash}: {run_ids} are not the first runs"
    if len(run_ids) < promised(ops, crash):
        return f"{crash}: {len(run_ids)} of {promised(ops, crash)} promised records"
    damage = verify(open_store(place))
    return f"{crash}: {damage}" if damage else None


def test_a_store_survives_the_death_of_its_writer_after_any_change(ops: list[Op], tmp_path: Path) -> None:
    cuts = random.Random(1).sample(range(len(ops) + 1), QUICK)
    assert [each for cut in cuts if (each := wrong(ops, Crash(cut), tmp_path / "left")) is not None] == []


def test_a_store_survives_the_loss_of_whatever_was_not_synced(ops: list[Op], tmp_path: Path) -> None:
    chance = random.Random(2)
    crashes = [Crash(chance.randrange(len(ops) + 1), lost) for lost in range(QUICK)]
    assert [each for crash in crashes if (each := wrong(ops, crash, tmp_path / "left")) is not None] == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_store_survives_every_cut_and_thousands_of_losses(ops: list[Op], tmp_path: Path) -> None:
    rounds = int(os.environ.get("CRASHES", "3000"))
    chance = random.Random(3)
    crashes = [Crash(cut) for cut in range(len(ops) + 1)]
    crashes += [Crash(chance.randrange(len(ops) + 1), 1000 + lost) for lost in range(rounds)]
    results = [each for crash in crashes if (each := wrong(ops, crash, tmp_path / "left")) is not None]
    print(f"{len(ops)} changes, {len(crashes)} crashes, {len(results)} violations")  # noqa: T201 - for the tables of the docs
    assert results == []


def test_the_simulator_finds_a_store_that_does_not_sync(ops: list[Op], tmp_path: Path) -> None:
    careless = [op for op in ops if op.kind != "sync"]
    chance = random.Random(4)
    crashes = [Crash(chance.randrange(len(careless) + 1), lost) for lost in range(QUICK)]

    def outcome(crash: Crash) -> bool:
        try:
            return wrong(careless, crash, tmp_path / "left") is None
        except Exception:  # noqa: BLE001 - whatever a torn database makes of itself
            return False

    assert not all(outcome(crash) for crash in crashes)
