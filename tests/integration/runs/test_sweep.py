"""A whole process of `tare sweep`, on fakes: its runs, its knee, and the same again from its store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import preloaded

from tare.store import open_store, verify

ROOT = Path(__file__).resolve().parents[3]
FAKES = [sys.executable, str(ROOT / "tests" / "integration" / "runs" / "tare_with_fakes.py")]
PATIENCE_S = 240
STUDY = """
format: 1
name: tiny
question: Does it sweep?
sut: {image: "tar:/nowhere", database: fake, deployment: fake, settings: {delay_ms: 3}}
client: {image: "tar:/nowhere", deployment: fake}
workload: {name: fake, measure_s: 0.3, window_s: 0.1}
factors:
  rows: {sets: workload.rows, levels: {few: 100, many: 200}}
baseline: few
"""


def tare(*argv: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run `tare` with the fakes to its end."""
    env = {
        **os.environ,
        "TARE_HOME": str(home / "home"),
        "PYTHONPATH": str(ROOT / "python"),
        "PATH": "/usr/bin:/bin",
    }
    return preloaded.run([*FAKES, *argv], timeout=PATIENCE_S, cwd=home, env=env)


def test_a_sweep_runs_each_number_of_threads_and_tells_the_same_again(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    words = ("sweep", "study.yaml", "--threads", "4,1", "--repetitions", "2", "--share", "0.5", "--format", "json")
    done = tare(*words, "--quiet", home=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [(point["threads"], point["runs"]) for point in summary["points"]] == [(1, 2), (4, 2)]
    assert summary["full"] in {1, 4}
    assert list(summary["shares"]) == ["0.5"]
    store = open_store(tmp_path / "tiny-sweep-full-store")
    assert sum(record.outcome.ok for record in store.records()) == 4  # on a busy machine one may be tried again
    assert verify(store) == ()
    assert tare(*words, home=tmp_path).stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--threads", "1,two"), "'two' is not a number of threads"),
        (("--threads", "8"), "at least two numbers of threads"),
        (("--arm", "meny"), 'did you mean "many"?'),
    ],
)
def test_what_cannot_be_swept_is_bad_input(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    done = tare("sweep", "study.yaml", *words, home=tmp_path)
    assert done.returncode == 2
    assert why in done.stderr
    assert not list(tmp_path.glob("*-store"))
