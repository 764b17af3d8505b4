"""`tare run` goes on with a store that an older tare left in the middle of a run."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import pytest
from tests import preloaded

from tare.record.run_record import to_tree
from tare.store import open_store, verify

ROOT = Path(__file__).resolve().parents[3]
FAKES = [sys.executable, str(ROOT / "tests" / "integration" / "runs" / "tare_with_fakes.py")]
OLD = ROOT / "tests" / "data" / "before-0.1.0" / "store.tar.gz"


def test_a_study_that_an_older_tare_left_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    with tarfile.open(OLD) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        archive.extractall(tmp_path)
    store = tmp_path / "store"
    before = open_store(store).records()
    (tmp_path / "facts.json").write_text(json.dumps(to_tree(before[0].host)))
    monkeypatch.setenv("HOST_FACTS", str(tmp_path / "facts.json"))
    command = [*FAKES, "run", str(tmp_path / "study.yaml"), "--store", str(store)]
    result = preloaded.run(command, timeout=240)
    assert result.returncode == 0, result.stderr
    after = open_store(store)
    assert after.records()[:2] == before
    assert [record.run_id for record in after.records() if record.outcome.ok] == [run.id for run in after.plan.runs]
    assert verify(after) == ()
