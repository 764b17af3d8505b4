"""`tare init` writes a study that is right as it stands, and never over anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.study.init import write
from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.reading.load import load
from tare.study.registry import installed


@pytest.mark.parametrize("name", ["my-study", "2024", "1.5", "true", "null"])
def test_the_study_it_writes_can_be_planned_unchanged(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    for scale in ("full", "demo"):
        study = load(path, installed(), scale)
        assert study.name == name
        assert len(expand(study).runs) == study.protocol.blocks * 4


def test_the_command_says_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["init"])
    assert shown.exit_code == 0
    assert "my-study/study.yaml" in shown.stdout
    assert "tare plan my-study" in shown.stdout
    assert (tmp_path / "my-study" / "study.yaml").exists()


def test_a_study_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path, "mine")
    path.write_text("my own words")
    with pytest.raises(StudyError, match="exists already"):
        write(tmp_path, "mine")
    assert path.read_text() == "my own words"


def test_a_file_in_the_way_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my own words")
    with pytest.raises(StudyError, match="exists already"):
        write(tmp_path, "mine")


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a b", "-x", "/abs"])
def test_a_name_that_is_not_plain_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be a study's name"):
        write(tmp_path, name)
    assert list(tmp_path.iterdir()) == []
