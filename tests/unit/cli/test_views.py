"""`tare views` on a real recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError, StudyError

RECORDED = Path(__file__).resolve().parents[2] / "data" / "trace"


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


@pytest.mark.parametrize("options", [["--json", "--csv"], ["--every", "0"], ["--every", "nan"]])
def test_options_that_cannot_be_meant_are_refused(options: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["views", str(RECORDED), *options]).exception, StudyError)


def test_what_is_no_trace_is_told(tmp_path: Path) -> None:
    assert isinstance(CliRunner().invoke(app, ["views", str(tmp_path)]).exception, StoreError)
