"""What a survey does not read is told, with what to do."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from tare.errors import StudyError
from tare.imports import collect, load_mapping
from tare.imports.guess import guess, survey

DATA = Path(__file__).parents[3] / "data"
SYSBENCH = (DATA / "sysbench" / "read-write.stdout").read_text()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for arm in ("bare", "docker"):
        (tmp_path / "results" / arm).mkdir(parents=True)
        (tmp_path / "results" / arm / "run1.log").write_text(SYSBENCH)
    return tmp_path / "results"


def sentences_of(results: Path) -> str:
    return "\n".join(guess(survey(results)).found)


def test_a_link_to_a_directory(results: Path, tmp_path: Path) -> None:
    (tmp_path / "kata").mkdir()
    (results / "kata").symlink_to(tmp_path / "kata")
    (results / "loop").symlink_to(results)
    assert "kata is a link to a directory (copy what it leads to" in sentences_of(results)
    assert "loop is a link to a directory" in sentences_of(results)


def test_the_output_of_a_second_tool_in_a_file(results: Path) -> None:
    pgbench = next((DATA / "imports" / "pgbench").glob("*.txt")).read_text()
    (results / "bare" / "run1.log").write_text(SYSBENCH + pgbench)
    assert (
        "bare/run1.log holds output of sysbench and pgbench, of which the first is read (split the file)"
        in sentences_of(results)
    )


def test_an_archive_in_an_archive(results: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("run1.log", SYSBENCH)
    with zipfile.ZipFile(results / "all.zip", "w") as archive:
        archive.writestr("kata.zip", inner.getvalue())
    assert "all.zip/kata.zip is an archive in an archive (unpack it)" in sentences_of(results)


def test_a_directory_without_a_file_and_one_without_a_result(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"there is no file in "):
        guess(survey(tmp_path))
    (tmp_path / "bare.log").write_text("")
    with pytest.raises(StudyError, match=r"no good report .*; of no known tool: bare\.log"):
        guess(survey(tmp_path))


def test_files_of_another_kind_that_fit_the_pattern_are_left_out_by_any_part(tmp_path: Path) -> None:
    """A monitor's log lies beside each report, named alike."""
    for arm in ("bare", "docker"):
        for test in ("ro.1", "rw.1"):
            place = tmp_path / "results" / arm
            place.mkdir(parents=True, exist_ok=True)
            (place / f"sysbench.{test}.res").write_text(SYSBENCH)
            (place / f"iostat.{test}.res").write_text("avg-cpu:  %user %nice\n")
    mapping = tmp_path / "guessed.yaml"
    mapping.write_text(guess(survey(tmp_path / "results")).text)
    assert len(collect(load_mapping(mapping), tmp_path / "results").runs) == 4
