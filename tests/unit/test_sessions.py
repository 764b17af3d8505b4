"""How a test session is shared by workers, and that it fails when it leaves a process behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import group_of

ROOT = Path(__file__).resolve().parents[2]
IMPATIENT = "import tests.conftest\ntests.conftest.SETTLE_S = 0.0\n"
LEAVES = """
import subprocess
import time
from pathlib import Path

def test_one():
    left = subprocess.Popen(["sleep", "60"], start_new_session=True)
    while b"sleep" not in Path(f"/proc/{left.pid}/cmdline").read_bytes():  # nor is its environment there yet
        time.sleep(0.01)
    Path(__file__).with_name("pid").write_text(str(left.pid))
    left.returncode = 0  # nobody waits for it

def test_two():
    pass
"""
CLEAN = "def test_one(): pass\n\ndef test_two(): pass\n"


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/integration/deployments/test_vm.py::test_a[b/c::d]", "engine"),
        ("tests/integration/storage/test_nfs.py::test_a", "engine"),
        ("tests/integration/views/test_views.py::test_a", "tests/integration/views/test_views.py"),
        ("tests/integration/hosts/test_hosts.py::test_a", "test hosts"),
        ("tests/integration/hosts/test_fake_cluster.py::test_a", "test hosts"),
        ("tests/integration/runs/test_kill_nine.py::test_a", "engine"),
        ("tests/integration/runs/test_programs.py::test_a", "engine"),
        ("tests/integration/runs/test_run.py::test_a", "tests/integration/runs/test_run.py"),
        ("tests/integration/load/test_tls.py::test_a", "tests/integration/load/test_tls.py"),
        ("tests/e2e/test_live_page.py::test_a", "tests/e2e/test_live_page.py"),
        ("tests/unit/test_tree.py::test_a", "tests/unit/test_tree.py"),
        ("tests/unit/cli/test_tree.py::TestIt::test_a", "tests/unit/cli/test_tree.py"),
    ],
)
def test_a_worker_runs_the_tests_of_a_group_one_after_the_other(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def session(place: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A session of its own, with the rules of this one."""
    (place / "impatient.py").write_text(IMPATIENT)
    (place / "test_it.py").write_text(tests)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "impatient", "-p", "tests.conftest", "-c", os.devnull]
    env = {**os.environ, "PYTHONPATH": f"{place}:{ROOT}", "TARE_HOME": str(place / "home"), "CI": ""}
    return subprocess.run(
        [*argv, f"--rootdir={place}", "-p", "no:cacheprovider", *options, str(place / "test_it.py")],
        capture_output=True, text=True, timeout=120, check=False, cwd=place, env=env,
    )  # fmt: skip


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadscope")], ids=["alone", "workers"])
def test_a_process_that_is_left_behind_fails_the_session_and_is_named(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    done = session(tmp_path, LEAVES, *options)
    subprocess.run(["kill", (tmp_path / "pid").read_text()], timeout=10, check=True)
    assert "2 passed" in done.stdout
    assert done.returncode == 1
    assert f"processes: {(tmp_path / 'pid').read_text()} sleep 60" in done.stdout


def test_a_session_that_leaves_nothing_passes(tmp_path: Path) -> None:
    done = session(tmp_path, CLEAN, "-n", "2", "--dist", "loadscope")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left behind" not in done.stdout
