"""Views as a table, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.unit.analyze.views.test_compare import row
from tests.unit.analyze.views.traces import HEADER, QUANTA, trace

from tare.analyze.views.summary import Views, views_of
from tare.report.views.files import COLUMNS, as_csv, as_json
from tare.report.views.table import quantity, render
from tare.store.trace import Trace

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "views"


@pytest.fixture(scope="module")
def views() -> Views:
    observed = pl.concat(
        [
            row("docker-stats", "cpu_percent", [60.1, 60.0, 59.9]),
            row("mpstat", "usr", [90.0] * 3, subject="all"),
            row("iostat", "writes", [100.0] * 3, subject="vda"),
        ]
    )
    return views_of(trace(steal=4), 1.0, observed)


@pytest.mark.parametrize("width", [120, 80])
def test_the_table_is_as_it_was(views: Views, width: int) -> None:
    path, text = GOLDEN / f"table-{width}.txt", render(views, width=width)
    if os.environ.get("TARE_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
    assert max(map(len, text.splitlines())) <= width


def test_a_tool_that_does_not_agree_stands_out(views: Views) -> None:
    assert "not in" in render(views, width=160)
    assert "\x1b[1;31m" in render(views, width=160, colour=True)


def test_single_cpus_and_idle_things_are_shown_when_all_are_asked_for(views: Views) -> None:
    assert "CPU of the host: 1" not in render(views)
    assert "CPU of the host: 1" in render(views, everything=True)


def test_a_trace_without_rows_is_no_error() -> None:
    text = render(views_of(Trace(HEADER, QUANTA, False, {})))
    assert "trace is incomplete" in text


def test_json_has_every_line_with_nothing_as_null(views: Views) -> None:
    tree = json.loads(as_json(views))
    lines = {(line["tool"], line["quantity"], line["subject"]): line for line in tree["lines"]}
    assert set(next(iter(lines.values()))) == set(COLUMNS)
    assert lines["cadvisor", "fs_writes_bytes", "db"]["value"] is None
    assert lines["docker-stats", "block_written_bytes", "db"]["value"] == 0.0
    assert lines["tare-probe", "block_written_bytes", "db"]["value"] == 32 * 2**20
    assert lines["docker-stats", "cpu_percent", "db"]["agrees"] is True
    assert lines["mpstat", "usr", "all"]["agrees"] is False
    assert lines["sar", "user", "all"]["real"] is None


def test_csv_has_the_same_lines(views: Views) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(views))))
    assert len(rows) == len(views.lines)
    assert tuple(rows[0]) == COLUMNS


@pytest.mark.parametrize("name", ["=1+2", "@cmd", '+a"b,c', "\t=1"])
def test_no_name_of_a_process_or_container_is_a_formula_in_csv(views: Views, name: str) -> None:
    hostile = replace(views, lines=tuple(replace(line, subject=name) for line in views.lines))
    rows = list(csv.DictReader(io.StringIO(as_csv(hostile), newline="")))
    assert {row["subject"] for row in rows} == {f"'{name}"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "%", "—"),
        (0.0, "%", "0.000"),
        (61.234, "%", "61.23"),
        (1905.25, "KiB/s", "1,905.2"),
        (80 * 2**20, "B", "80.00 MiB"),
        (512.0, "B", "512 B"),
    ],
)
def test_figures_are_written_with_what_matters(value: float | None, unit: str, text: str) -> None:
    assert quantity(value, unit) == text
