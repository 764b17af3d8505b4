"""`tare report` on a real store: formats, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.analyze import synthetic
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StudyError
from tare.plan.expand import expand
from tare.record.run_record import RunRecord
from tare.store import resume_store

ARMS = ("bare", "bridge")


def store_of(path: Path, records: list[RunRecord]) -> Path:
    with resume_store(path, expand(synthetic.study(ARMS))) as writer:
        for record in records:
            writer.commit(record.model_copy(update={"raw": ()}))
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("report") / "store", synthetic.records(ARMS))


def test_the_table_goes_to_stdout_without_colour_into_a_pipe(store: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(store)])
    assert done.exit_code == 0
    assert "bridge" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("style", "begin"), [("html", "<!doctype html>"), ("md", "# What"), ("csv", "study,"), ("json", "{")]
)
def test_each_format_goes_to_a_file(store: Path, tmp_path: Path, style: str, begin: str) -> None:
    target = tmp_path / f"report.{style}"
    done = CliRunner().invoke(app, ["report", str(store), "--format", style, "--output", str(target)])
    assert (done.exit_code, done.stdout) == (0, "")
    assert target.read_text(encoding="utf-8").lstrip().startswith(begin)
    assert [each.name for each in tmp_path.iterdir()] == [target.name]


def test_json_on_stdout_is_whole(store: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(store), "--format", "json"])
    assert json.loads(done.stdout)["findings"][0]["arm"] == "bridge"


def test_a_store_without_a_comparison_is_reported_and_ends_with_1(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store", [synthetic.record(0, "bare", None)])
    done = CliRunner().invoke(app, ["report", str(path), "--output", str(tmp_path / "report.txt")])
    assert done.exit_code == 1
    assert "There is no answer" in (tmp_path / "report.txt").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_said_and_nothing_is_left(store: Path, tmp_path: Path) -> None:
    from tare.errors import StudyError

    done = CliRunner().invoke(app, ["report", str(store), "--output", str(tmp_path / "none" / "report.html")])
    assert isinstance(done.exception, StudyError)
    assert "cannot write the report" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_no_store_is_an_error_with_a_hint(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path / "none")])
    assert "there is no store at" in str(done.exception)


def test_a_study_whose_control_differs_is_reported_and_ends_with_1(tmp_path: Path) -> None:
    rates = {"bare": 1900.0, "bridge": 1700.0, "baseline-again": 2000.0}
    made = [
        synthetic.record(block, arm, rate + block, position=n)
        for block in range(1, 6)
        for n, (arm, rate) in enumerate(rates.items())
    ]
    done = CliRunner().invoke(app, ["report", str(store_of(tmp_path / "store", made))])
    assert done.exit_code == 1
    assert "INVALID (control-differs)" in done.stdout


def test_a_place_that_is_none_is_refused_before_anything_is_drawn(store: Path, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere" / "x")
    for words in (
        ["report", str(store), "--format", "html", "--output", str(tmp_path)],
        ["compare", str(store), str(store), "--output", nowhere],
        ["check", str(store), "--max-overhead", "5%", "--junit", nowhere],
        ["check", str(store), "--max-overhead", "5%", "--markdown", nowhere],
    ):
        refused = CliRunner().invoke(app, words).exception
        assert isinstance(refused, StudyError)
        assert "cannot write the report" in str(refused)


def test_a_run_to_draw_is_refused_where_nothing_is_drawn(store: Path) -> None:
    refused = CliRunner().invoke(app, ["report", str(store), "--run", "b01-0-bare"]).exception
    assert isinstance(refused, StudyError)
