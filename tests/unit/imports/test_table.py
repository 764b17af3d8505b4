"""A table of others' runs: a run a row, and what it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.imports.test_import import imported

from tare.analyze import analyze
from tare.errors import StudyError
from tare.imports import Import

TABLE = Path(__file__).parents[2] / "data" / "imports" / "table.yaml"


def test_a_table_has_a_run_a_row(tmp_path: Path) -> None:
    place = tmp_path / "results"
    place.mkdir()
    (place / "all.csv").write_text(
        "Setup,Threads,Run,ops,READ avg,failed\n"
        "I,10,1,1000,200,0\nI,10,2,1010,,0\nII,10,1,900,250,0\nII,10,2,905,240,3\nII,10,3,906,241,\n"
    )
    text = TABLE.read_text()
    made = imported(tmp_path, place, text)
    rows = {(run.record.arm, run.record.block): run.record for run in made.runs}
    measurement = rows["II", 1].measurement
    assert measurement is not None
    assert measurement.throughput_per_s == 900.0
    assert measurement.by_operation["read"].latency.mean_ms == 0.25
    empty = rows["I", 2].measurement
    assert empty is not None
    assert empty.by_operation["read"].latency.mean_ms is None
    assert rows["II", 2].outcome.reason == "3 errors"
    assert rows["II", 3].outcome.reason == f"no count of errors in {place / 'all.csv'}:6"
    heading, good = (place / "all.csv").read_text().split("\n", 1)
    for line, why in {
        "II,10,4,1,000,200,0": "7 cells under 6 headings",
        "II,10,4,1000": "4 cells under 6 headings",
        "II,10,4,-5,200,0": "throughput cannot be -5",
        "II,10,4,1000,-1,0": "read_latency_mean cannot be -1",
        "II,10,4,1_000,200,0": "'1_000' is not a number",
        "II,10,4,1000,200,-1": "failed cannot be -1",
        "III,10,4,1000,200,0": "'III' of {setup} is not a level",
        f"II,10,4,{'1' * 200_000},200,0": "after line 6: field larger than field limit",
    }.items():
        (place / "all.csv").write_text(f"{heading}\n{good}{line}\n")
        with pytest.raises(StudyError, match=rf"all\.csv(:7|,).*{why}"):
            imported(tmp_path, place, text)
    (place / "all.csv").write_text(f"{heading}\n{good}I,10,1,1000,200,0\n")
    with pytest.raises(StudyError, match=r"all\.csv:2 and .*all\.csv:7 are the same run"):
        imported(tmp_path, place, text)
    (place / "all.csv").write_text(f"{heading}\n{good}II,10,2\N{SUPERSCRIPT TWO},0,200,0\n")
    reasons = {run.record.outcome.reason for run in imported(tmp_path, place, text).runs}
    assert f"no operation in {place / 'all.csv'}:7" in reasons
    (place / "all.csv").write_text(f"{heading}\n")
    with pytest.raises(StudyError, match="no run found in 1 file"):
        imported(tmp_path, place, text)
    (place / "all.csv").write_text(f"{heading},ops\n")
    with pytest.raises(StudyError, match="several columns 'ops'"):
        imported(tmp_path, place, text)
    (place / "all.csv").write_text(f"{heading}\n{good}")
    with pytest.raises(StudyError, match="has no column 'ops a second'"):
        imported(tmp_path, place, text.replace("column: ops", "column: ops a second"))


def a_table(tmp_path: Path, content: bytes, parser: str = "") -> Import:
    (tmp_path / "tables").mkdir(exist_ok=True)
    (tmp_path / "tables" / "all.csv").write_bytes(content)
    text = f"""\
format: 1
name: table
question: What?
files: all.csv
parser:
  name: csv
  parts: {{setup: Setup, run: Run}}
  figures:
    throughput: {{column: ops, unit: /s}}
    read_latency_mean: {{column: READ, unit: us}}
{parser}
factors: {{setup: {{I: I, II: II}}}}
baseline: I
repetition: run
"""
    return imported(tmp_path, tmp_path / "tables", text)


def test_decimals_are_after_the_sign_that_is_said(tmp_path: Path) -> None:
    table = b"Setup;Run;ops;READ\r\nI;1;1000,5;200,25\r\nII;1;900;250\r\n"
    made = a_table(tmp_path, table, "  delimiter: ';'\n  decimal: ','")
    measurement = made.runs[0].record.measurement
    assert measurement is not None
    assert (measurement.throughput_per_s, measurement.by_operation["read"].latency.mean_ms) == (
        1000.5,
        0.20025,
    )
    with pytest.raises(StudyError, match=r"all\.csv:2: '1000,5' is not a number") as error:
        a_table(tmp_path, table, "  delimiter: ';'")
    assert 'decimal: ","' in (error.value.hint or "")
    with pytest.raises(StudyError, match=r"'1\.000,5' is not a number") as error:
        a_table(tmp_path, table.replace(b"1000,5", b"1.000,5"), "  delimiter: ';'\n  decimal: ','")
    assert "thousands separators are refused" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("content", "why", "hint"),
    [
        ("Sétup,Run,ops,READ\n".encode("latin-1"), "is not UTF-8 text", "save the table"),
        (b"", "no column 'Setup'", "first line must be the heading"),
        (b"\nSetup,Run,ops,READ\n", "no column 'Setup'", "first line must be the heading"),
        (b"Setup;Run;ops;READ\n", "no column 'Setup'", "is `delimiter` right"),
    ],
)
def test_a_table_that_is_none_is_told_with_what_may_be_wrong(
    content: bytes, why: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(StudyError, match=why) as error:
        a_table(tmp_path, content)
    assert hint in (error.value.hint or "")


def test_lines_may_end_in_any_way(tmp_path: Path) -> None:
    assert len(a_table(tmp_path, b"Setup,Run,ops,READ\rI,1,1000,200\rII,1,900,250\r").runs) == 2


def test_a_kind_of_operation_that_is_known_alone_is_compared(tmp_path: Path) -> None:
    rows = [
        f"{setup},{run},1000,{latency + run}\n" for setup, latency in (("I", 100), ("II", 200)) for run in (1, 2, 3)
    ]
    made = a_table(tmp_path, "".join(["Setup,Run,ops,READ\n", *rows]).encode())
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    point = analysis.finding("II", "read_latency_mean").estimate.point
    assert point == pytest.approx(0.98, abs=0.01)
