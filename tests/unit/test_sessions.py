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
    left = subprocess.Popen(["sleep", "600"], start_new_session=True)
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
        ("tests/integration/runs/test_failures.py::test_a", "engine"),
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


@pytest.fixture(autouse=True)
def _in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TARE_TEST_ORDER", raising=False)


def session(place: Path, tests: str, *options: str, **others: str) -> subprocess.CompletedProcess[str]:
    """A session of its own, with the rules of this one. `others` are more files of tests, by name."""
    (place / "impatient.py").write_text(IMPATIENT)
    files = {"test_it": tests, **others}
    for name, content in files.items():
        (place / f"{name}.py").write_text(content)
    paths = [str(place / f"{name}.py") for name in files]
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "impatient", "-p", "tests.conftest", "-c", os.devnull]
    env = {**os.environ, "PYTHONPATH": f"{place}:{ROOT}", "TARE_HOME": str(place / "home"), "CI": ""}
    return subprocess.run(
        [*argv, f"--rootdir={place}", "-p", "no:cacheprovider", *options, *paths],
        capture_output=True, text=True, timeout=120, check=False, cwd=place, env=env,
    )  # fmt: skip


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadscope")], ids=["alone", "workers"])
def test_a_process_that_is_left_behind_fails_the_session_and_is_named(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    done = session(tmp_path, LEAVES, *options)
    subprocess.run(["kill", (tmp_path / "pid").read_text()], timeout=60, check=True)
    assert "2 passed" in done.stdout
    assert done.returncode == 1
    assert f"processes: {(tmp_path / 'pid').read_text()} sleep 600" in done.stdout


def test_a_session_that_leaves_nothing_passes(tmp_path: Path) -> None:
    done = session(tmp_path, CLEAN, "-n", "2", "--dist", "loadscope")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left behind" not in done.stdout


FAILS = """
import subprocess
from pathlib import Path

def test_one():
    started = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE)
    Path(__file__).with_name("pid").write_text(str(started.pid))
    assert 1 == 2
"""
LOOKS = """
import gc
import os
import sys
import warnings
from pathlib import Path

import pytest

def test_two():
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    assert not caught
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path(__file__).with_name("pid").read_text()), 0)
"""


@pytest.mark.parametrize("options", [(), ("-n", "1", "--dist", "loadscope")], ids=["alone", "workers"])
def test_what_a_failed_test_started_has_ended_before_the_tests_of_the_next_file(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    done = session(tmp_path, FAILS, *options, "-W", "error", test_other=LOOKS)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "left behind" not in done.stdout


def test_a_failure_is_told_before_the_session_ends(tmp_path: Path) -> None:
    done = session(tmp_path, FAILS, test_other="def test_two():\n    print('never mind')\n")
    at = done.stdout.index("in call: test_it.py::test_one: assert 1 == 2")
    assert at < done.stdout.index("= FAILURES =")


def order(place: Path, seed: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    tests = "".join(f"def test_{number}(): pass\n" for number in range(6))
    monkeypatch.setenv("TARE_TEST_ORDER", seed)
    done = session(place, tests, "--collect-only", test_other=tests)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_a_seed_shuffles_files_and_the_tests_in_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, one, again, two = (order(tmp_path, seed, monkeypatch) for seed in ("", "1", "1", "2"))
    assert one == again
    assert sorted(plain) == sorted(one) == sorted(two)
    assert len({tuple(each) for each in (plain, one, two)}) == 3
    files = [line.partition("::")[0] for line in one]
    assert files in (sorted(files), sorted(files, reverse=True))
