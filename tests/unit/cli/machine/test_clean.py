"""`tare clean` says what it removed, and never that there was nothing where something stayed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.machine.clean import NOT_ALL_REMOVED
from tare.sites.layout import default_layout, make_home
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


def test_nothing_to_remove_is_said() -> None:
    result = CliRunner().invoke(app, ["clean", "--yes"])
    assert (result.exit_code, result.stdout) == (0, "nothing to remove\n")


def test_what_stayed_is_named_and_fails() -> None:
    SqliteLedger(default_layout().ledger).note(Kind.IMAGE, "tare/none:0-0", keep=True)
    result = CliRunner().invoke(app, ["clean", "--yes"])
    assert (result.exit_code, result.stdout) == (NOT_ALL_REMOVED, "")
    assert "image tare/none:0-0 on local could not be removed: no container engine answers" in result.stderr


def test_files_that_a_killed_tare_was_writing_are_removed() -> None:
    """Found by reading: one of an initial file system, some MiB, stayed for ever."""
    make_home(default_layout().home)
    machines = default_layout().machines
    machines.mkdir()
    kept, half = machines / "accelerator.json", machines / f"accelerator.json.{'0a' * 16}"
    for path in (kept, half):
        path.write_text("{}")
        os.utime(path, (time.time() - 300, time.time() - 300))
    listed = CliRunner().invoke(app, ["clean", "--dry-run"])
    assert (listed.exit_code, listed.stdout) == (0, f"would remove path {half} on local\n")
    assert half.exists()
    result = CliRunner().invoke(app, ["clean", "--yes"])
    assert (result.exit_code, result.stdout) == (0, f"removed path {half} on local\n")
    assert (kept.exists(), half.exists()) == (True, False)
