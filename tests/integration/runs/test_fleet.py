"""The command line through to a fleet: `tare run --sites` on sites of fakes, each with a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tare.store import open_store, verify
from tools.chaos.fleet import processes_of, sites_file
from tools.chaos.ground import FAKES, ROOT
from tools.chaos.studies import FAKES as STUDY

SITES = ("north", "south", "east")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "sites.yaml").write_text(sites_file(SITES))
    (tmp_path / "study.yaml").write_text(STUDY.replace("blocks: 4", "blocks: 6, paired: true"))
    return tmp_path


def tare(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ, "TARE_HOME": str(place / "home"), "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}",
        "FAKE_SITES": str(place / "sites"), "DOCKER_HOST": "unix:///nonexistent",
    }  # fmt: skip
    return subprocess.run(
        [*FAKES, *words], cwd=place, env=env, capture_output=True, text=True, timeout=240, check=False
    )


def test_a_study_on_three_sites_from_the_command_line(place: Path) -> None:
    done = tare(place, "run", "study.yaml", "--sites", "sites.yaml", "--store", "store", "--format", "json")
    assert done.returncode == 0, done.stderr
    store = open_store(place / "store")
    good = Counter(record.run_id for record in store.records() if record.outcome.ok)
    assert good == Counter(run.id for run in store.plan.runs)
    assert Counter(record.site for record in store.records()) == dict.fromkeys(SITES, 4)
    assert not verify(store)
    over = next(one["over_sites"] for one in json.loads(done.stdout)["findings"] if one["metric"] == "throughput")
    assert [site["site"] for site in over["sites"]] == sorted(SITES)
    assert [site["blocks"] for site in over["sites"]] == [2, 2, 2]
    assert " on north: " in done.stderr
    assert processes_of(place) == []
    again = tare(place, "run", "study.yaml", "--sites", "sites.yaml", "--store", "store", "--quiet")
    assert again.returncode == 0
    assert "over 3 sites" in again.stdout


def test_sites_that_refuse_end_the_command_with_one_sentence_and_a_way_on(place: Path) -> None:
    for site in SITES:
        (place / "sites" / site).mkdir(parents=True)
        (place / "sites" / site / "refuses").touch()
    done = tare(place, "run", "study.yaml", "--sites", "sites.yaml", "--store", "store", "--quiet")
    assert done.returncode == 3, done.stderr
    assert "no site is left; the last one, " in done.stderr
    assert "resume" in done.stderr
    assert "Traceback" not in done.stderr
    assert processes_of(place) == []


@pytest.mark.slow
def test_kills_of_tare_and_of_sites_lose_nothing_and_leave_nothing() -> None:
    argv = [sys.executable, "-m", "tools.chaos", "--study", "fleet", "--faults", "4", "--seed", "2"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["violations"], summary["faults"] >= 4) == (0, True)
