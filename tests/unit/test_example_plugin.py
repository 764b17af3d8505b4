"""The example package, installed beside tare: listed, planned, run with fake deployments, named in the records."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import preloaded

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "plugin"
WITH_FAKES = ROOT / "tests" / "integration" / "runs" / "tare_with_fakes.py"
TIMEOUT_S = 240
VERSION = {"package": "tare-counter", "version": "0.1.0"}

STUDY = """
format: 1
name: counting
question: Does the example run?
sut: {image: "tar:/nowhere", database: counter, deployment: fake}
client: {image: "tar:/nowhere", deployment: fake}
workload: {name: count, measure_s: 0.3, window_s: 0.1}
protocol: {name: fixed, blocks: 1, retries: 0, seed: 1, control: false}
factors:
  start:
    sets: [sut.settings.start]
    levels:
      zero: {}
      nine: {sut.settings.start: 9}
baseline: zero
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package and its metadata, from a copy: building must leave nothing in the checkout."""
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--no-compile", "--quiet")
    argv = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source)]
    subprocess.run(argv, check=True, capture_output=True, timeout=TIMEOUT_S)
    return target


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Runs a Python program that finds the package."""
    path = os.pathsep.join((str(ROOT / "python"), str(ROOT), str(site)))

    def call(*argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": path, "TARE_HOME": str(tmp_path / "home")}
        done = preloaded.run([sys.executable, *argv], env=env, timeout=TIMEOUT_S)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call


def test_its_own_tests_pass(run: Run) -> None:
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE), str(EXAMPLE / "tests"))


def test_its_study_is_planned(run: Run) -> None:
    program = (
        "import pathlib, sys\n"
        "from tare.plan.expand import expand\n"
        "from tare.study.reading.load import load\n"
        "from tare.study.registry import installed\n"
        "for arm in expand(load(pathlib.Path(sys.argv[1]), installed())).study.arms: print(arm.name)"
    )
    output = run("-c", program, str(EXAMPLE / "study.yaml"))  # `tare plan` asks for an engine too
    assert output.stdout.split() == ["bare", "container", "baseline-again"]


def test_it_is_found_by_its_entry_points(run: Run) -> None:
    program = "from tare.doctor.plugins import plugin_lines\nfor line in plugin_lines(): print(line.found)"
    lines = run("-c", program)
    assert lines.stdout.splitlines() == [
        "database counter: tare-counter 0.1.0",
        "workload count: tare-counter 0.1.0",
    ]


def test_a_study_of_it_runs_and_its_records_name_it(run: Run, tmp_path: Path) -> None:
    study, store = tmp_path / "study.yaml", tmp_path / "store"
    study.write_text(STUDY)
    run(str(WITH_FAKES), "run", str(study), "--store", str(store))
    output = run(
        "-c",
        "import json, pathlib, sys\n"
        "from tare.store import open_store\n"
        "store = open_store(pathlib.Path(sys.argv[1]))\n"
        "print(json.dumps([record.model_dump(mode='json') for record in store.records()]))",
        str(store),
    )
    records = json.loads(output.stdout)
    assert [record["outcome"]["ok"] for record in records] == [True, True]
    for record in records:
        assert record["plugins"] == {"database counter": VERSION, "workload count": VERSION}
        assert record["measurement"]["unit"] == "counts"
    assert {record["arm"]: record["effective"] for record in records} == {"zero": {}, "nine": {"start": "9"}}


def test_its_names_are_offered_for_a_misspelt_one(run: Run, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text((EXAMPLE / "study.yaml").read_text().replace("database: counter", "database: countr"))
    assert 'did you mean "counter"?' in run("-m", "tare", "plan", str(study), code=2).stderr
