"""`tare run` killed at random moments on a real engine."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tare.store import open_store, verify

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[3]
KILL_NINE = [sys.executable, str(ROOT / "tools" / "kill_nine.py")]


@pytest.mark.slow  # test_run.py kills a smaller study, and test_chaos.py plays more than kills
def test_the_demo_study_survives_kill_nine_and_uses_the_paths_it_names(tmp_path: Path) -> None:
    """Real containers, networks and bare servers are killed under way; the study is whole all the same."""
    stores = tmp_path / "stores"
    argv = [*KILL_NINE, "percona-2016", "--scale", "demo", "--blocks", "1", "--stores", str(stores)]
    done = subprocess.run(
        [*argv, "--times", "10", "--longest-s", "25"],
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 problems" in done.stdout
    store = sorted(stores.iterdir())[-1]
    opened = open_store(store)
    good = Counter(record.run_id for record in opened.records() if record.outcome.ok)
    assert good == {run.id: 1 for run in opened.plan.runs}
    assert verify(opened) == ()
    records = {record.arm: record for record in opened.records() if record.outcome.ok}
    hops = {arm: record.path and record.path["hop"] for arm, record in records.items()}
    assert hops == {
        "bare": "loopback",
        "baseline-again": "loopback",
        "host": "loopback",
        "bridge": "bridge",
        "published-loopback": "docker-proxy",
        "published-address": "dnat",
        "shared": "loopback",
    }
    assert len({record.images["sut"]["digest"] for record in records.values()}) == 1
    assert len({record.parity["sut"]["binary_digest"] for record in records.values()}) == 1
    assert len({record.snapshot and record.snapshot["content"] for record in records.values()}) == 1
