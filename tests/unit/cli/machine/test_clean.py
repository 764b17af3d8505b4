"""`tare clean` says what it removed, and never that there was nothing where something stayed."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.machine.clean import NOT_ALL_REMOVED
from tare.sites.layout import default_layout
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
