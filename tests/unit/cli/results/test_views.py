"""`tare views` on a real recording."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError, StudyError

RECORDED = Path(__file__).resolve().parents[3] / "data" / "trace"


def test_a_recording_is_shown_with_why_and_what_nobody_sees() -> None:
    done = CliRunner().invoke(app, ["views", str(RECORDED)])
    assert done.exit_code == 0
    assert "CPU of a control group: db" in done.stdout
    assert "Why they differ" in done.stdout
    assert "What they cannot see" in done.stdout
    assert "\x1b" not in done.stdout


def test_views_of_a_real_container_are_close_to_its_counters() -> None:
    tree = json.loads(CliRunner().invoke(app, ["views", str(RECORDED), "--json"]).stdout)
    cpu = {
        line["tool"]: line["core_percent"] for line in tree["lines"] if line["measure"] == "CPU of a control group"
    }
    assert cpu["podman-stats"] == cpu["tare-probe"] == pytest.approx(15.93, abs=0.01)
    assert cpu["metrics-server"] == pytest.approx(cpu["tare-probe"])


def test_csv_goes_to_stdout() -> None:
    assert CliRunner().invoke(app, ["views", str(RECORDED), "--csv"]).stdout.startswith("measure,subject,tool")


@pytest.mark.parametrize("options", [["--json", "--csv"], ["--every", "0"], ["--every", "nan"], ["--every", "inf"]])
def test_options_that_cannot_be_meant_are_refused(options: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["views", str(RECORDED), *options]).exception, StudyError)


def test_what_is_no_trace_is_told(tmp_path: Path) -> None:
    assert isinstance(CliRunner().invoke(app, ["views", str(tmp_path)]).exception, StoreError)


def test_no_tool_is_shown_more_often_than_the_trace_has_readings() -> None:
    done = CliRunner().invoke(app, ["views", str(RECORDED), "--every", "1e-9"])
    assert "as tools sampling every 0.5 s would report them" in done.stdout


def test_a_trace_too_short_for_a_rate_says_so() -> None:
    done = CliRunner().invoke(app, ["views", str(RECORDED), "--every", "1000"])
    assert "Too short for two samples" in done.stdout
    assert "Too short" not in CliRunner().invoke(app, ["views", str(RECORDED)]).stdout


def test_of_a_recording_without_a_run_it_is_not_known_whether_it_was_emulated() -> None:
    tree = json.loads(CliRunner().invoke(app, ["views", str(RECORDED), "--json"]).stdout)
    assert tree["emulated"] is None
    table = csv.DictReader(io.StringIO(CliRunner().invoke(app, ["views", str(RECORDED), "--csv"]).stdout))
    assert {row["emulated"] for row in table} == {""}


def test_a_table_for_machines_tells_that_the_trace_is_not_complete(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "trace")
    head = tmp_path / "trace" / "trace.json"
    head.write_text(json.dumps(json.loads(head.read_text()) | {"complete": False}))
    done = CliRunner().invoke(app, ["views", str(tmp_path / "trace"), "--csv"])
    assert "the trace is incomplete" in done.stderr
