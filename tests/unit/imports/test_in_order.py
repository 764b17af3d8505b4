"""Several processes give what one does, in the same order."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from tare.cli import app
from tare.imports import in_order as module
from tare.imports.in_order import in_order
from tare.store import open_store
from tare.store.schema import runs
from tare.store_place import parse_store_url

SYSBENCH = Path(__file__).parents[2] / "data" / "sysbench"


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(module, "_FEW", 0)
    monkeypatch.setattr(module, "_CHUNK", 2)


def _double(at: int, number: int) -> tuple[int, int]:
    if number == at:
        raise ValueError(f"no {number}")
    return 2 * number, os.getpid()


@pytest.mark.usefixtures("two_processes")
def test_results_come_in_the_order_of_items_and_from_other_processes() -> None:
    made = list(in_order(partial(_double, -1), range(41), here=lambda number: number % 10 == 3))
    assert [(number, double) for number, (double, _) in made] == [(number, 2 * number) for number in range(41)]
    own = {number for number, (_, process) in made if process == os.getpid()}
    assert own == {3, 13, 23, 33, 40}  # the last is a chunk that is not full


@pytest.mark.usefixtures("two_processes")
@pytest.mark.parametrize("at", [3, 20, 40])
def test_an_error_comes_in_its_turn(at: int) -> None:
    seen: list[int] = []

    def take(results: Iterator[tuple[int, object]]) -> None:
        seen.extend(number for number, _ in results)

    with pytest.raises(ValueError, match=f"no {at}"):
        take(in_order(partial(_double, at), range(41), here=lambda number: number == 20))
    assert set(range(at // 2 * 2)) <= set(seen) | {at}
    assert at not in seen


def stored(place: Path) -> list[tuple[object, ...]]:
    with open_store(parse_store_url(str(place))).engine.connect() as connection:
        asked = select(runs.c.run_id, runs.c.digest, runs.c.record).order_by(runs.c.run_id)
        return [tuple(row) for row in connection.execute(asked)]


def test_an_import_by_several_processes_stores_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for arm in ("bare", "docker"):
        (tmp_path / "logs" / arm).mkdir(parents=True)
        for run in range(3):
            shutil.copy(SYSBENCH / "closed.stdout", tmp_path / "logs" / arm / f"run{run}.log")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["import", "logs", "--yes", "--store", "one"]).exit_code == 0
    request.getfixturevalue("two_processes")
    assert CliRunner().invoke(app, ["import", "logs.import.yaml", "logs", "--store", "two"]).exit_code == 0
    assert stored(Path("two")) == stored(Path("one"))
    assert all(
        '"windows":[{' in str(record) and '"histogram":[[' in str(record) for *_, record in stored(Path("two"))
    )
