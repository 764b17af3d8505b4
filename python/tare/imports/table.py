"""Runs from a table: a heading, then a row a run."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tare.errors import StudyError
from tare.imports.mapping import Column, CsvParser
from tare.study.suggest import did_you_mean

_TO_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class Row:
    """A run of the table."""

    parts: Mapping[str, str]
    measurement: Mapping[str, Any] | None
    failure: str | None
    raw: bytes


def rows(raw: bytes, parser: CsvParser, where: str) -> Iterator[Row]:
    """Every row. Raises `StudyError` for a missing column, a unit that cannot be, a cell that is no number."""
    text = raw.decode("utf-8-sig", errors="replace")
    table = csv.DictReader(io.StringIO(text), delimiter=parser.delimiter)
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
            hint = did_you_mean(column, heading, kind="its columns")
            raise StudyError(f"{where} has no column {column!r}", hint=hint)
        if heading.count(column) > 1:
            raise StudyError(f"{where} has several columns {column!r}", hint="give each a name of its own")
    first, *_ = text.splitlines() or [""]
    for row in table:
        place = f"{where}:{table.line_num}"
        _must_be_as_wide(row, heading, place, parser.delimiter)
        parts = {part: (row[column] or "").strip() for part, column in parser.parts.items()}
        figures = {name: _figure(row, each, name, place) for name, each in parser.figures.items()}
        kept = (first + "\n" + parser.delimiter.join(str(cell or "") for cell in row.values()) + "\n").encode()
        errors = None if parser.errors is None else _number(row[parser.errors], place)
        if figures.get("throughput") is None:
            yield Row(parts, None, f"no throughput in {place}", kept)
        elif parser.errors is not None and errors is None:
            yield Row(parts, None, f"no count of errors in {place}", kept)
        elif figures["throughput"] == 0:
            yield Row(parts, None, f"not one operation in {place}", kept)
        elif errors:
            yield Row(parts, None, f"{errors:g} errors", kept)
        else:
            yield Row(parts, _measurement(figures), None, kept)


def _must_be_as_wide(row: Mapping[str | Any, Any], heading: Sequence[str], place: str, delimiter: str) -> None:
    """Of 1,5 without quotes, all cells after it would stand under the heading before theirs."""
    cells = sum(cell is not None for cell in row.values()) - (None in row) + len(row.get(None, ()))
    if cells != len(heading):
        raise StudyError(
            f"{place}: {cells} cells under {len(heading)} headings",
            hint=f"is the row cut, or does a number have a {delimiter!r} in it?",
        )


def _figure(row: Mapping[str, str | None], column: Column, metric: str, place: str) -> float | None:
    value = _number(row[column.column], place)
    if value is None:
        return None
    if value < 0:
        raise StudyError(
            f"{place}: {metric} cannot be {value:g}", hint="an empty cell is a figure that is not known"
        )
    if (column.unit == "/s") != (metric == "throughput"):
        raise StudyError(f"{metric} cannot be in {column.unit}", hint="throughput: /s; latencies: ns, us, ms or s")
    return value if metric == "throughput" else value * _TO_MS[column.unit]


def _number(cell: str | None, place: str) -> float | None:
    """A number; an empty cell is not known."""
    text = (cell or "").strip()
    if not text:
        return None
    try:
        value = float(text.replace("_", "?"))  # Python would take 1_000 for 1000
    except ValueError as error:
        raise StudyError(f"{place}: {text!r} is not a number") from error
    if not math.isfinite(value):
        raise StudyError(f"{place}: {text} is not a finite number")
    return value


def _measurement(figures: Mapping[str, float | None]) -> dict[str, Any]:
    """Keys as those of `workloads.Measurement`; how many operations there were, no table tells."""
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
    told: dict[str, float | None] = {f"{name}_ms": figures.get(f"{prefix}latency_{name}") for name in names}
    return {**told, "resolution": None, "blind_to_stalls": None, "timed_from": None}
