"""A few faults at random moments of studies of fakes; `make chaos` plays as many as you like."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_LONGEST_S = 1100


def chaos(*words: str) -> None:
    argv = [sys.executable, "-m", "tools.chaos", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["violations"] == 0
    assert summary["faults"] >= 2


def test_faults_at_random_moments_lose_nothing_and_leave_nothing() -> None:
    chaos("--faults", "4", "--seed", "4", "--minutes", "0.1")


def test_kills_at_random_moments_lose_nothing_and_leave_nothing() -> None:
    chaos("--faults", "4", "--seed", "1", "--kinds", "kill -9 tare", "--longest-s", "12")
