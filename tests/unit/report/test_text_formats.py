"""Markdown, CSV and JSON: approved as they are, and harmless whatever the names."""

from __future__ import annotations

import csv
import io
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.analyze import synthetic
from tests.unit.approved import assert_as_approved
from tests.unit.report.printed import keys_of

from tare.analyze.metrics import METRICS
from tare.report import csv_rows, findings_file, schema
from tare.report.content import build_report
from tare.report.frames.estimates import COLUMNS
from tare.report.in_full import with_details
from tare.report.markdown import markdown

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "report"
SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"
REPORT = build_report(synthetic.study(), synthetic.records())
EMPTY = build_report(synthetic.study(), [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("report.md", markdown.render(with_details(REPORT, synthetic.records()))),
        ("findings.csv", csv_rows.render(REPORT)),
        ("findings.json", findings_file.render(REPORT)),
    ],
)
def test_a_format_is_as_it_was_approved(name: str, text: str) -> None:
    assert_as_approved(text, GOLDEN / name)


def test_markdown_of_a_study_without_a_good_run_says_so_and_how_to_run_it() -> None:
    made = [synthetic.record(0, arm, None, position=n) for n, arm in enumerate(("bare", "bridge"))]
    text = markdown.render(with_details(build_report(synthetic.study(("bare", "bridge")), made), made))
    assert "There is no answer" in text
    assert "b00-1-bridge, attempt 1, failed in measure" in text
    assert "no good run" in text
    assert "tare run study.yaml" in text


def test_many_blocks_stand_below_each_other() -> None:
    arms = ("bare", "bridge", "host")
    text = markdown.render(build_report(synthetic.study(arms, blocks=30), synthetic.records(arms, blocks=30)))
    assert "| block | bridge | host |" in text
    assert "| 29 | " in text
    assert max(map(len, text.splitlines())) < 1000


@pytest.mark.parametrize("report", [REPORT, EMPTY], ids=["usual", "empty"])
def test_json_keeps_to_the_published_schema(report: Any) -> None:
    kept = json.loads((SCHEMAS / schema.FINDINGS_SCHEMA.name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(kept)
    jsonschema.validate(json.loads(findings_file.render(report)), kept)


def test_the_schema_refuses_a_finding_without_its_interval() -> None:
    tree = json.loads(findings_file.render(REPORT))
    del tree["findings"][0]["low"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree, schema.FINDINGS_SCHEMA.tree())


def test_json_has_fractions_and_null_where_nothing_is_known() -> None:
    findings = json.loads(findings_file.render(REPORT))["findings"]
    by_place = {(each["arm"], each["metric"]): each for each in findings}
    loopback = by_place["published-loopback", "throughput"]
    assert loopback["published"] == pytest.approx(-0.6901408)
    assert -0.6 < loopback["low"] < loopback["point"] < loopback["high"] < -0.5
    assert (loopback["n"], loopback["baseline"], loopback["levels"]) == (5, "bare", {"path": "published-loopback"})
    assert by_place["published-address", "throughput"]["published"] is None


def test_the_kept_schema_is_the_one_that_would_be_written(tmp_path: Path) -> None:
    assert schema.FINDINGS_SCHEMA.keep(["--check", "--folder", str(SCHEMAS)]) is None
    assert schema.FINDINGS_SCHEMA.keep(["--check", "--folder", str(tmp_path)]) is not None
    assert schema.FINDINGS_SCHEMA.keep(["--folder", str(tmp_path)]) is None
    assert schema.FINDINGS_SCHEMA.keep(["--check", "--folder", str(tmp_path)]) is None


def test_csv_has_a_row_a_finding_and_empty_cells_for_what_is_not_known() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_rows.render(EMPTY))))
    assert len(rows) == 5 * len(METRICS)
    assert {row["point"] for row in rows} == {""}
    assert {row["n"] for row in rows} == {"0"}


@pytest.mark.parametrize("name", ["=1+2", "+cmd|x", "@SUM(A1)", "-2", 'a"b,c\nd'])
def test_no_cell_is_a_formula_and_no_name_breaks_a_row(name: str) -> None:
    arms = ("bare", name)
    rows = list(csv.DictReader(io.StringIO(csv_rows.render(build_report(synthetic.study(arms), [])))))
    assert len(rows) == len(METRICS)
    assert not [row for row in rows if row["arm"][0] in "=+-@"]
    assert name in rows[0]["arm"]


def test_markdown_shows_hostile_names_as_they_are_spelt() -> None:
    name = "<script>x|y\n# no *heading* [l](javascript:x) `z`"
    text = markdown.render(build_report(synthetic.study(("bare", name)), synthetic.records(("bare", name))))
    assert "<script>" not in text
    tables = [list(rows) for table, rows in groupby(text.splitlines(), lambda line: line[:1] == "|") if table]
    assert len(tables[0]) == 4
    for rows in tables:
        assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    assert "[l](" not in text


def test_every_key_of_the_json_every_column_and_every_metric_is_documented() -> None:
    text = (SCHEMAS.parent / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    keys = keys_of(findings_file.FindingsFile) | set(COLUMNS)
    missing = [key for key in sorted(keys) if f"`{key}`" not in text]
    assert not missing, f"document {missing} in docs/reference/findings.md"
