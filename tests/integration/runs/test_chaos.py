"""A few faults at random moments of studies of fakes and of Redis; `make chaos` plays as many as you like."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_LONGEST_S = 1100


def chaos(*words: str) -> None:
    argv = [sys.executable, "-m", "tools.chaos", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["violations"] == 0
    assert told["faults"] >= 2


def test_faults_at_random_moments_lose_nothing_and_leave_nothing() -> None:
    chaos("--faults", "4", "--seed", "4", "--minutes", "0.1")


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("study", ["redis", "stages"])
def test_faults_of_each_part_of_a_real_study_cost_no_more_than_attempts(study: str) -> None:
    chaos("--study", study, "--faults", "15", "--seed", "5", "--minutes", "5")
