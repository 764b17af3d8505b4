"""Runs from a table with a heading and one row for each run."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tare.errors import StudyError
from tare.imports.mapping import PER_SECOND, Column, CsvParser
from tare.study.suggest import did_you_mean

_TO_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
_GROUPED = re.compile(r"-?\d+(?:[.,]\d+)+")
"""Numbers with separators of thousands or a decimal comma: `1.234,5`, `1,234.5`, `201,5`."""

LARGEST_FIGURE = 1e15
"""Largest plausible throughput per second or latency in ms; sums and ratios of such figures stay finite."""


@dataclass(frozen=True)
class Row:
    """A run of the table. `place`: file and line."""

    place: str
    parts: Mapping[str, str]
    measurement: Mapping[str, Any] | None
    failure: str | None
    raw: bytes


def rows(raw: bytes, parser: CsvParser, where: str) -> Iterator[Row]:
    """Yield every row. Raises `StudyError` for a missing column or a cell that is no plausible number."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError(f"{where} is not UTF-8 text", hint="save the table as CSV in UTF-8") from error
    table = csv.DictReader(io.StringIO(text, newline=None), delimiter=parser.delimiter)
    try:
        yield from _rows(table, text, parser, where)
    except csv.Error as error:
        hint = f"is it a table with {parser.delimiter!r} between cells, and is each quote closed?"
        raise StudyError(f"{where}, after line {table.line_num}: {error}", hint=hint) from error


def _rows(table: csv.DictReader[str], text: str, parser: CsvParser, where: str) -> Iterator[Row]:
    heading = [name or "" for name in table.fieldnames or ()]
    columns = [each.column for each in parser.figures.values()]
    wanted = [*parser.parts.values(), *columns, *filter(None, [parser.errors])]
    for column in wanted:
        if column not in heading:
            raise StudyError(f"{where} has no column {column!r}", hint=_columns(column, heading))
        if heading.count(column) > 1:
            raise StudyError(f"{where} has several columns {column!r}", hint="give each column its own name")
    first, *_ = text.splitlines() or [""]
    for row in table:
        place = f"{where}:{table.line_num}"
        _must_be_as_wide(row, heading, place, parser.delimiter)
        parts = {part: (row[column] or "").strip() for part, column in parser.parts.items()}
        figures = {name: _figure(row, each, name, parser, place) for name, each in parser.figures.items()}
        kept = (first + "\n" + parser.delimiter.join(str(cell or "") for cell in row.values()) + "\n").encode()
        errors = None if parser.errors is None else _count(row[parser.errors], parser, place)
        if figures.get("throughput") is None:
            yield Row(place, parts, None, f"no throughput in {place}", kept)
        elif parser.errors is not None and errors is None:
            yield Row(place, parts, None, f"no count of errors in {place}", kept)
        elif figures["throughput"] == 0:
            yield Row(place, parts, None, f"no operation in {place}", kept)
        elif errors:
            yield Row(place, parts, None, f"{errors:g} errors", kept)
        else:
            yield Row(place, parts, _measurement(figures), None, kept)


def _must_be_as_wide(row: Mapping[str | Any, Any], heading: Sequence[str], place: str, delimiter: str) -> None:
    """Refuse a row with more or fewer cells than headings: an unquoted 1,5 would shift all cells after it."""
    cells = sum(cell is not None for cell in row.values()) - (None in row) + len(row.get(None, ()))
    if cells != len(heading):
        raise StudyError(
            f"{place}: {cells} cells under {len(heading)} headings",
            hint=f"is the row cut short, or does a number contain {delimiter!r}?",
        )


def _columns(wanted: str, heading: Sequence[str]) -> str:
    """Hint for a missing column."""
    if not any(heading):
        return "its first line must be the heading"
    if len(heading) == 1:
        return f"its first line is one column, {heading[0][:80]!r}: is it the heading, and is `delimiter` right?"
    return did_you_mean(wanted, heading, kind="its columns") or ""


def _figure(
    row: Mapping[str, str | None], column: Column, metric: str, parser: CsvParser, place: str
) -> float | None:
    value = _number(row[column.column], parser.decimal, place)
    if value is None:
        return None
    if value < 0:
        raise StudyError(
            f"{place}: {metric} cannot be {value:g}", hint="leave the cell empty if the figure is unknown"
        )
    figure = value if column.unit == PER_SECOND else value * _TO_MS[column.unit]
    if figure > LARGEST_FIGURE:
        raise StudyError(f"{place}: {metric} of {value:g} {column.unit} is not plausible", hint="check its unit")
    return figure


def _count(cell: str | None, parser: CsvParser, place: str) -> float | None:
    value = _number(cell, parser.decimal, place)
    if value is not None and value < 0:
        raise StudyError(f"{place}: {parser.errors} cannot be {value:g}")
    return value


def _number(cell: str | None, decimal: str, place: str) -> float | None:
    """Parse a number; `None` for an empty cell. Separators of thousands are refused, as 1.234 is ambiguous."""
    text = (cell or "").strip()
    if not text:
        return None
    other = "." if decimal == "," else ","
    try:
        value = float(
            text.replace("_", "?").replace(other, "?").replace(decimal, ".")
        )  # Python takes 1_000 for 1000
    except ValueError as error:
        mark = f"thousands separators are refused; for decimals after {other!r}, set `decimal: {json.dumps(other)}`"
        hint = mark if _GROUPED.fullmatch(text) else "leave the cell empty if the figure is unknown"
        raise StudyError(f"{place}: {text!r} is not a number", hint=hint) from error
    if not math.isfinite(value):
        raise StudyError(
            f"{place}: {text} is not a finite number", hint="leave the cell empty if the figure is unknown"
        )
    return value


def _measurement(figures: Mapping[str, float | None]) -> dict[str, Any]:
    """Make a tree with the keys of `workloads.Measurement`; tables lack the number of operations."""
    from tare.analyze.metrics import metric_named  # statistics are slow to import, and only tables need this

    kinds = dict.fromkeys(kind for name in figures if (kind := metric_named(name).operation))
    by_operation = {
        kind: {"operations": None, "errors": 0, "latency": _latency(figures, f"{kind}_")} for kind in kinds
    }
    return {
        "operations": None,
        "unit": "operations",
        "duration_s": None,
        "throughput_per_s": figures["throughput"],
        "queries_per_s": None,
        "errors": 0,
        "reconnects": None,
        "latency": _latency(figures, ""),
        "histogram": [],
        "windows": [],
        "details": {},
        "by_operation": by_operation,
        "started_at": None,
    }


def _latency(figures: Mapping[str, float | None], prefix: str) -> dict[str, float | None]:
    names = ("mean", "min", "max", "p50", "p95", "p99")
    values: dict[str, float | None] = {f"{name}_ms": figures.get(f"{prefix}latency_{name}") for name in names}
    return {**values, "resolution": None, "blind_to_stalls": None, "timed_from": None}
