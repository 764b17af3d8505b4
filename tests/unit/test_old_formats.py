"""Every format that tare keeps, as commit 5f8d74f wrote it before the renames, is read by today's code."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.calibrate.archive import Archive, StudyResult
from tare.cli import app
from tare.knowledge.claim import Measured, load_claims
from tare.live.now import read_now
from tare.store import open_store, resume_store
from tare.store.schema import FORMAT

OLD = Path(__file__).resolve().parents[1] / "data" / "before-0.1.0"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The store of a study that was killed in its third run."""
    with tarfile.open(OLD / "store.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        archive.extractall(tmp_path)
    return tmp_path / "store"


def test_an_old_store_opens_with_its_plan_and_records(store: Path) -> None:
    opened = open_store(store)
    assert [run.id for run in opened.plan.runs] == ["b01-1-long", "b01-2-short", "b02-1-long", "b02-2-short"]
    assert [(record.run_id, record.outcome.ok) for record in opened.records()] == [
        ("b01-1-long", True),
        ("b01-2-short", True),
    ]


@pytest.mark.parametrize("format_", ["json", "csv"])
def test_an_old_store_reports_the_findings_that_it_reported(store: Path, format_: str) -> None:
    result = CliRunner().invoke(app, ["report", str(store), "--format", format_])
    assert result.exit_code == 0, result.output
    reported, written = result.stdout, (OLD / f"findings.{format_}").read_text()
    if format_ == "json":
        written = written.replace('"unwitnessed"', '"unobserved"')  # the rule's new name
        assert set(known(reported)) >= set(known(written))
        assert {key: known(reported)[key] for key in known(written)} == known(written)
    else:
        assert columns(reported).items() >= columns(written).items()


def known(text: str) -> dict[str, object]:
    """Dotted place → value of every number, name and word of a JSON text; sentences may be reworded."""
    values: dict[str, object] = {}

    def walk(at: str, tree: object) -> None:
        if isinstance(tree, dict | list):
            for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
                walk(f"{at}.{key}", value)
        elif not (isinstance(tree, str) and " " in tree):
            values[at] = tree

    walk("", json.loads(text))
    return values


def columns(text: str) -> dict[str, list[str]]:
    """Column → its cells; sentences may be reworded, and columns that came later stand between the old ones."""
    rows = list(csv.DictReader(io.StringIO(text)))
    return {name: ["" if " " in row[name] else row[name] for row in rows] for name in rows[0]}


def test_an_old_store_takes_more_runs(store: Path) -> None:
    opened = open_store(store)
    with resume_store(store, opened.plan) as writer:
        assert writer.records() == opened.records()


def test_the_live_journal_of_an_old_run_is_read(store: Path) -> None:
    now = read_now(store / "now.json")
    assert now is not None
    assert [run.run_id for run in now.runs] == ["b02-1-long"]
    assert now.log[-1].text == "b02-1-long begins, attempt 1"


def test_a_newer_format_of_the_store_is_refused_with_what_to_do(store: Path) -> None:
    connection = sqlite3.connect(store / "store.sqlite")
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    result = CliRunner().invoke(app, ["report", str(store)])
    assert result.exit_code != 0
    assert "newer tare" in str(result.exception or result.output)


def test_an_old_claim_is_read() -> None:
    (known,) = load_claims([OLD / "claims"])
    assert isinstance(known.claim.effect, Measured)
    assert known.claim.effect.log_ratio == pytest.approx(-0.07499542536536394)
    assert known.claim.context is not None
    assert known.claim.context.arm.deployment == "container"


def test_an_old_calibration_is_quoted() -> None:
    (machine,) = (OLD / "calibration").iterdir()
    (summary,) = Archive(OLD / "calibration").summaries(machine.name)
    written = json.loads(next(machine.glob("*/summary.json")).read_text())
    read = known(summary.model_dump_json())
    assert {key: read[key] for key in known(json.dumps(written))} == known(json.dumps(written))
    assert (summary.effort.studies, summary.false_positives.of, summary.spread) == (4, 4, 0.012)


def test_each_study_of_an_old_calibration_is_read() -> None:
    (machine,) = (OLD / "calibration").iterdir()
    files = sorted(machine.glob("*/work-*.json"))
    assert [StudyResult.model_validate_json(path.read_text()).effort.runs for path in files] == [30] * 4
