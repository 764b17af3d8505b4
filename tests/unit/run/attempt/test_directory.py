"""A run's directory is root's alone, unless a user's engine has to reach its files by the path."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.conftest import Plans, Rig

from tare.run.attempt.directory import WorkDirectory, closed_to_others, make_work_directory
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

NOBODY = 65534


@pytest.mark.parametrize(
    ("host", "engine", "closed"),
    [
        ({"tare_is_root": True}, None, True),
        ({"tare_is_root": True}, {"engine_rootless": False}, True),
        ({"tare_is_root": True}, {"engine_rootless": True}, False),
        ({"tare_is_root": False}, None, False),
        ({}, None, False),
    ],
)
def test_roots_is_closed_but_to_a_users_engine(
    host: Mapping[str, Any], engine: Mapping[str, Any] | None, closed: bool
) -> None:
    assert closed_to_others(host, engine) == closed


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="takes root and setpriv")
@pytest.mark.parametrize("closed", [True, False])
def test_a_set_uid_program_in_its_data_is_out_of_others_reach(tmp_path: Path, closed: bool) -> None:
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    workdir = WorkDirectory(LocalHost(), str(tmp_path / "work" / "run"))
    make_work_directory(workdir, SqliteLedger(tmp_path / "ledger"), closed=closed)
    program = Path(workdir.raw, "sh")
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    by_shell = ["sh", "-c", 'exec "$0"', str(program)]  # setpriv itself still has its capabilities
    ran = subprocess.run([*drop, *by_shell], timeout=30, check=False, capture_output=True)
    assert (ran.returncode == 0) is not closed


def test_an_attempt_of_roots_closes_its_directory(rig: Rig, plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.swap(host_facts=lambda: {"name": "test", "tare_is_root": True})
    modes, give = set[int](), WorkDirectory.give

    def seen(workdir: WorkDirectory, path: str, image: Any) -> None:
        modes.add(Path(workdir.path).stat().st_mode & 0o777)
        give(workdir, path, image)

    monkeypatch.setattr(WorkDirectory, "give", seen)
    assert rig.execute(plans())[0].outcome.ok
    assert modes == {0o700}
