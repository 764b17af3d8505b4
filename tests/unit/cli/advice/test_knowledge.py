"""`tare knowledge` lists, shows and exports claims, one's own among them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.advice.knowledge import write_list
from tare.errors import StudyError
from tare.knowledge.claim import load_claims
from tare.knowledge.own import COLUMNS
from tare.study.catalogue import claims_folder

OWN = (claims_folder() / "moby-11911" / "moby-11911-host.yaml").read_text()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_list_has_a_line_a_claim_and_can_be_narrowed() -> None:
    shown = CliRunner().invoke(app, ["knowledge", "list", "--study", "moby-11911", "--metric", "throughput"])
    assert shown.exit_code == 0
    assert "-55.4 %" in shown.stdout
    assert "3 claims" in shown.stderr


def test_a_pipe_gets_a_line_a_claim_whose_first_field_is_an_id_that_can_be_shown() -> None:
    runner = CliRunner(env={"COLUMNS": "40"})
    lines = runner.invoke(app, ["knowledge", "list"]).stdout.splitlines()
    assert len(lines) == len(load_claims([claims_folder()]))
    assert {line.count("\t") for line in lines} == {2}
    longest = max((line.split("\t")[0] for line in lines), key=len)
    assert runner.invoke(app, ["knowledge", "show", longest]).exit_code == 0


@pytest.mark.parametrize("width", [20, 60, 80, 120, 250])
def test_no_terminal_is_too_narrow_for_an_id_in_one_piece(width: int) -> None:
    claims = load_claims([claims_folder()])
    written = io.StringIO()
    write_list(claims, Console(file=written, force_terminal=True, color_system=None, width=width))
    words = written.getvalue().split()
    assert {known.id for known in claims} <= set(words)


def test_a_claim_is_shown_as_it_is_written_and_as_json() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["knowledge", "show", "moby-11911-host"]).stdout == OWN
    (claim,) = json.loads(runner.invoke(app, ["knowledge", "show", "moby-11911-host", "--json"]).stdout)
    assert claim["id"] == "moby-11911-host"
    assert claim["source"]["url"].endswith("11911")


def test_claims_of_ones_own_are_listed_beside_those_that_come_with_tare(home: Path) -> None:
    (home / "knowledge").mkdir(parents=True)
    (home / "knowledge" / "own-host.yaml").write_text(OWN.replace("study: moby-11911", "study: own"))
    shown = CliRunner().invoke(app, ["knowledge", "list", "--database", "redis", "--study", "own"])
    assert "own-host" in shown.stdout


def test_a_csv_has_a_row_a_claim_and_no_figure_that_is_not_told() -> None:
    text = CliRunner().invoke(app, ["knowledge", "export", "--format", "csv"]).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == COLUMNS
    (row,) = [row for row in rows if row["id"] == "percona-2016-bridge"]
    assert (row["se"], row["n"], row["metric"]) == ("", "", "throughput")
    assert len(rows) == len(json.loads(CliRunner().invoke(app, ["knowledge", "export"]).stdout))


def test_an_unknown_claim_and_a_broken_file_are_refused(home: Path) -> None:
    assert isinstance(CliRunner().invoke(app, ["knowledge", "show", "nothing"]).exception, StudyError)
    (home / "knowledge").mkdir(parents=True)
    (home / "knowledge" / "broken.yaml").write_text("format: 1\nsays: <script>\n")
    error = CliRunner().invoke(app, ["knowledge", "list"]).exception
    assert isinstance(error, StudyError)
    assert "broken.yaml:1:1" in str(error)


def test_hostile_texts_stay_on_their_line_and_are_cut(home: Path) -> None:
    (home / "knowledge").mkdir(parents=True)
    says = "<script>\\n\\e[31m" + "x" * 10_000
    text = (claims_folder() / "grambow-2018" / "grambow-2018-ranking.yaml").read_text()
    lines = [f'says: "{says}"' if line.startswith("says:") else line for line in text.splitlines()]
    own = "\n".join(lines).replace("study: grambow-2018", "study: own")
    (home / "knowledge" / "own-hostile.yaml").write_text(own)
    shown = CliRunner().invoke(app, ["knowledge", "list", "--study", "own"])
    assert shown.exit_code == 0, shown.exception
    assert "\x1b" not in shown.stdout
    assert len(shown.stdout) < 4_000


@pytest.mark.parametrize(
    ("option", "name", "hint"),
    [
        ("study", "percona-216", "percona-2016"),
        ("database", "cassandr", "cassandra"),
        ("metric", "nope", "throughput"),
    ],
)
def test_a_name_that_no_claim_has_is_refused_with_those_that_there_are(option: str, name: str, hint: str) -> None:
    refused = CliRunner().invoke(app, ["knowledge", "list", f"--{option}", name]).exception
    assert isinstance(refused, StudyError)
    assert name in str(refused)
    assert hint in str(refused.hint)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    error = CliRunner().invoke(app, ["knowledge", "list", "--claims", str(tmp_path / "nothing")]).exception
    assert isinstance(error, StudyError)


@pytest.mark.parametrize("text", ["", "- a\n- b\n"])
def test_a_file_that_is_no_claim_is_not_taken_for_a_study(text: str, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    error = CliRunner().invoke(app, ["knowledge", "list", "--claims", str(tmp_path)]).exception
    assert isinstance(error, StudyError)
    assert "tare init" not in str(error)
    assert "tare knowledge show" in str(error)


def test_a_claim_whose_text_would_be_shown_in_another_order_is_refused_with_its_line(home: Path) -> None:
    (home / "knowledge").mkdir(parents=True)
    own = "\n".join('says: "\u202eleft"' if line.startswith("says:") else line for line in OWN.splitlines())
    (home / "knowledge" / "own.yaml").write_text(own)
    error = CliRunner().invoke(app, ["knowledge", "list"]).exception
    assert isinstance(error, StudyError)
    assert re.search(r"own\.yaml:\d+:1: says: the character U\+202E", str(error))


def test_what_a_spreadsheet_would_run_is_written_as_text(home: Path) -> None:
    (home / "knowledge").mkdir(parents=True)
    hostile = "=cmd() run"
    own = "\n".join(f'says: "{hostile}"' if line.startswith("says:") else line for line in OWN.splitlines())
    (home / "knowledge" / "own.yaml").write_text(own.replace("study: moby-11911", "study: own"))
    rows = csv.DictReader(io.StringIO(CliRunner().invoke(app, ["knowledge", "export", "--format", "csv"]).stdout))
    (row,) = [each for each in rows if each["id"] == "own"]
    assert row["says"] == f"'{hostile}"
    shown = CliRunner().invoke(app, ["knowledge", "show", "own"]).stdout
    assert "=cmd()" in shown
