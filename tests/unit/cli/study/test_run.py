"""What `tare run` refuses leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import EnvironmentLacks


def test_a_home_that_cannot_be_made_is_told_before_there_is_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    monkeypatch.setenv("TARE_HOME", str(file / "home"))
    store = tmp_path / "store"
    actual = CliRunner().invoke(app, ["run", "percona-2016", "--scale", "demo", "--store", str(store)])
    assert isinstance(actual.exception, EnvironmentLacks)
    (result,) = [line for line in str(actual.exception).splitlines() if str(file) in line]
    why = f"{file}/home cannot be made: {file} is no directory"
    assert result == f"  - {why}; set TARE_HOME to a directory that you may write to"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
