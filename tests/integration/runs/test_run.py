"""Whole processes of `tare run` on fakes: killed, interrupted, two at once."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded

from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import open_store, verify
from tools.chaos.stores import Stores

ROOT = Path(__file__).resolve().parents[3]
FAKES = [sys.executable, str(ROOT / "tests" / "integration" / "runs" / "tare_with_fakes.py")]
PATIENCE_S = 240

STUDY = """
format: 1
name: tiny
question: Do the fakes work?
sut: {image: "tar:/nowhere", database: fake, deployment: fake}
client: {image: "tar:/nowhere", deployment: fake}
workload: {name: fake, measure_s: 0.3, window_s: 0.1}
protocol: {name: fixed, blocks: 2, retries: 0, seed: 1, control: false}
factors:
  delay:
    sets: [sut.settings.delay_ms]
    levels:
      short: {}
      long: {sut.settings.delay_ms: 3}
baseline: short
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TARE_HOME of the test's own, so that two tests do not sweep each other's."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of fakes."""
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Starts `tare` in the background; whatever still runs at the end is ended."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*argv: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"stderr-{len(running)}").open("wb") as stderr:
            running.append(preloaded.Popen([*FAKES, *argv], stdout=subprocess.DEVNULL, stderr=stderr))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def tare(*argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `tare` with the fakes to its end."""
    done = preloaded.run([*FAKES, *argv], timeout=PATIENCE_S)
    assert done.returncode == code, done.stderr
    return done


def wait_for_first_record(store: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not (store / "raw").is_dir() or not any((store / "raw").iterdir()):
        assert time.monotonic() < deadline, "no run was finished"
        time.sleep(0.05)


def wait_for_work(home: Path) -> None:
    """Until a run has begun to make things."""
    deadline = time.monotonic() + PATIENCE_S
    while not (home / "work").is_dir() or not any((home / "work").iterdir()):
        assert time.monotonic() < deadline, "no run has begun"
        time.sleep(0.01)


def left(home: Path) -> list[str]:
    return [entry.ident for entry in SqliteLedger(home / "ledger.sqlite").entries() if not entry.keep]


def good(store: Path) -> Counter[str]:
    return Counter(record.run_id for record in open_store(store).records() if record.outcome.ok)


def assert_whole(store: Path) -> None:
    opened = open_store(store)
    assert good(store) == {run.id: 1 for run in opened.plan.runs}
    assert verify(opened) == ()


def test_a_study_runs_to_its_report_and_a_finished_one_is_only_reported(
    home: Path, study: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    first = tare("run", str(study), "--store", str(store), "--format", "json")
    findings = json.loads(first.stdout)
    assert findings["study"] == "tiny"
    assert "[4 of about 4]" in first.stderr
    assert_whole(store)
    assert left(home) == []
    again = tare("run", str(study), "--store", str(store), "--format", "json")
    assert json.loads(again.stdout) == findings
    assert again.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_study_tears_down_says_how_to_go_on_and_does(
    home: Path, study: Path, tmp_path: Path, started: Any, number: signal.Signals
) -> None:
    store = tmp_path / "store"
    running = started("run", str(study), "--store", str(store))
    wait_for_first_record(store)
    running.send_signal(number)
    assert running.wait(PATIENCE_S) == 128 + number
    stderr = (tmp_path / "stderr-0").read_text()
    assert f"interrupted by {number.name}" in stderr
    assert "The same command resumes" in stderr
    assert left(home) == []
    assert not list((home / "work").iterdir())
    before = open_store(store).records()
    assert 0 < len(before) < 4
    tare("run", str(study), "--store", str(store))
    assert open_store(store).records()[: len(before)] == before
    assert_whole(store)


def test_a_second_run_on_a_store_in_use_is_refused(home: Path, study: Path, tmp_path: Path, started: Any) -> None:
    store = tmp_path / "store"
    # Enough blocks that it still runs when the second tare has started, however slowly.
    study.write_text(STUDY.replace("blocks: 2", "blocks: 200"))
    running = started("run", str(study), "--store", str(store))
    wait_for_first_record(store)
    refused = tare("run", str(study), "--store", str(store), code=2)
    assert f"being written by another tare (process {running.pid})" in refused.stderr
    before = good(store).total()
    deadline = time.monotonic() + PATIENCE_S
    while good(store).total() == before:
        assert running.poll() is None, "the refused one ended it"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_two_stores_can_be_filled_at_once(home: Path, study: Path, tmp_path: Path, started: Any) -> None:
    stores = [tmp_path / "one", tmp_path / "two"]
    running = [started("run", str(study), "--store", str(store)) for store in stores]
    ended = [process.wait(PATIENCE_S) for process in running]
    assert ended == [0, 0], [(tmp_path / f"stderr-{number}").read_text() for number in (0, 1)]
    for store in stores:
        assert_whole(store)
    assert left(home) == []


def test_another_seed_on_the_same_store_is_refused(home: Path, study: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    tare("run", str(study), "--store", store, "--blocks", "1")
    refused = tare("run", str(study), "--store", store, "--blocks", "1", "--seed", "7", code=2)
    assert "belongs to another plan" in refused.stderr


def test_a_run_that_fails_for_good_ends_with_1_and_its_reason(home: Path, study: Path, tmp_path: Path) -> None:
    study.write_text(
        STUDY.replace("window_s: 0.1", "window_s: 0.1, fault: errors").replace("retries: 0", "retries: 1")
    )
    done = tare("run", str(study), "--store", str(tmp_path / "store"), "--blocks", "1", code=1)
    assert "attempt 2 failed in measure" in done.stderr
    assert left(home) == []


def test_clean_removes_what_a_killed_run_left_and_its_caches(
    home: Path, study: Path, tmp_path: Path, started: Any
) -> None:
    # Enough blocks that it still runs when `tare clean` has started, however slowly.
    study.write_text(STUDY.replace("blocks: 2", "blocks: 200"))
    running = started("run", str(study), "--store", str(tmp_path / "store"))
    wait_for_first_record(tmp_path / "store")
    wait_for_work(home)
    refused = tare("clean", "--yes", code=3)
    assert f"a running tare (process {running.pid})" in refused.stderr
    running.kill()
    running.wait()
    entries = SqliteLedger(home / "ledger.sqlite").entries()
    assert {Kind.PATH} <= {entry.kind for entry in entries}
    would = json.loads(tare("clean", "--dry-run", "--format", "json").stdout)
    assert len(would["would_remove"]) == len(entries)
    done = json.loads(tare("clean", "--yes", "--format", "json").stdout)
    assert done["failed"] == []
    assert SqliteLedger(home / "ledger.sqlite").entries() == ()
    assert not list((home / "work").iterdir())
    assert not list((home / "snapshots").iterdir())
    assert good(tmp_path / "store").total() > 0, "results are not tare clean's to remove"


def test_clean_can_keep_what_was_costly_to_make(home: Path, study: Path, tmp_path: Path) -> None:
    tare("run", str(study), "--store", str(tmp_path / "store"), "--blocks", "1")
    tare("clean", "--yes", "--keep-images")
    assert len(list((home / "snapshots").iterdir())) == 2
    tare("clean", "--yes")
    assert not list((home / "snapshots").iterdir())


def test_clean_asks_first(home: Path, study: Path, tmp_path: Path) -> None:
    tare("run", str(study), "--store", str(tmp_path / "store"), "--blocks", "1")
    argv = [*FAKES, "clean"]
    done = subprocess.run(argv, input="n\n", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert len(list((home / "snapshots").iterdir())) == 2


@pytest.mark.parametrize(
    "harm", ["DELETE FROM runs", "UPDATE runs SET record = replace(record, '\"block\":1', '\"block\":2')"]
)
def test_chaos_finds_a_record_that_is_lost_or_changed(home: Path, study: Path, tmp_path: Path, harm: str) -> None:
    """The check itself is checked."""
    trial = Stores(FAKES, tmp_path, random.Random(0), 1.0)
    tare("run", str(study), "--store", str(trial.store), "--blocks", "1")
    trial.look()
    assert len(trial.committed) == 2
    assert trial.problems == []
    database = sqlite3.connect(trial.store / "store.sqlite")
    with database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(harm)
    database.close()
    trial.look()
    assert len(trial.problems) == 2
    assert "is lost or changed" in trial.problems[0]
