"""Reports reach their file whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.errors import StudyError
from tare.report import write


def test_a_report_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    write("new é \ud800", target)
    assert target.read_text(encoding="utf-8") == "new é ?"
    assert list(tmp_path.iterdir()) == [target]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StudyError, match="cannot be written"):
        write("new", tmp_path / "report.html")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_place_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path, why in (
        (Path(), "a folder"),
        (tmp_path, "a folder"),
        (file / "x", "no folder"),
        (Path("/no/x"), "no folder"),
    ):
        with pytest.raises(StudyError, match=why):
            write("new", path)
    assert list(tmp_path.iterdir()) == [file]
