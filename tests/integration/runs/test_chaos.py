"""A few faults at random moments of a study of fakes; `make chaos` plays as many as you like."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SEED, FAULTS = 4, 5


def test_faults_at_random_moments_lose_nothing_and_leave_nothing() -> None:
    argv = [sys.executable, "-m", "tools.chaos", "--faults", str(FAULTS), "--seed", str(SEED)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["violations"] == 0
    assert told["faults"] >= FAULTS
