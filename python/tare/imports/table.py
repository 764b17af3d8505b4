"""Runs from a table: a row, a cell (`wide`) or rows of the same parts (`tidy`) for each run."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tare.errors import StudyError
from tare.imports.contents import text_of
from tare.imports.headings import words_of
from tare.imports.mapping import PER_SECOND, Column, ColumnName, CsvParser, Quotient
from tare.imports.over_time import has_even_steps, names_a_time
from tare.imports.parsers import LARGEST_FIGURE
from tare.imports.parsers.figures import Figures, Kind, Times
from tare.record.measurement import Measurement
from tare.study.suggest import did_you_mean

_TO_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
_GROUPED = re.compile(r"-?\d+(?:[.,]\d+)+")
"""Numbers with separators of thousands or a decimal comma: `1.234,5`, `1,234.5`, `201,5`."""
_PERCENTILE, _AVERAGE = re.compile(r"_p\d+$"), re.compile(r"\b(?:avg|average|averaged|mean|means)\b")
_DECLINED = "leave the cell empty if the figure is unknown"


@dataclass(frozen=True)
class Row:
    """A run of the table. `place`: file and line."""

    place: str
    parts: Mapping[str, str]
    measurement: Measurement | None
    failure: str | None
    raw: bytes
    distortions: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Line:
    """A row of the table: its cells, and where it is."""

    place: str
    cells: Sequence[str]


class _Table:
    """The rows of a file, and the columns that the mapping names. Raises `StudyError` for what is no such table."""

    def __init__(self, raw: bytes, parser: CsvParser, where: str) -> None:
        text = text_of(raw)
        if text is None or "\ufffd" in text:
            raise StudyError(f"{where} is not UTF-8 text", hint="save the table as CSV in UTF-8")
        self.parser, self.where = parser, where
        self.distortions: tuple[str, ...] = ()
        self._reader = csv.reader(io.StringIO(text, newline=None), delimiter=parser.delimiter)
        first = list(self._next() or ()) if parser.headings is None else None
        self.heading = list(parser.headings or ()) if first is None else [cell.strip() for cell in first]
        self.head = parser.delimiter.join(self.heading)

    def _next(self) -> list[str] | None:
        line = self._reader.line_num
        try:
            return next(self._reader, None)
        except csv.Error as error:
            hint = f"is it a table with {self.parser.delimiter!r} between cells, and is each quote closed?"
            raise StudyError(f"{self.where}, after line {line}: {error}", hint=hint) from error

    def lines(self) -> Iterator[_Line]:
        """Yield the rows; those without any text, which spreadsheets leave, are none."""
        while (cells := self._next()) is not None:
            if not any(cell.strip() for cell in cells):
                continue
            place = f"{self.where}:{self._reader.line_num}"
            if self.parser.headings is None and [cell.strip() for cell in cells] == self.heading:
                continue  # a heading again, as tables that were appended to have it
            self._must_be_as_wide(cells, place)
            yield _Line(place, cells)

    def _must_be_as_wide(self, cells: Sequence[str], place: str) -> None:
        """Refuse a row with more or fewer cells than headings: an unquoted 1,5 would shift all cells after it."""
        if len(cells) != len(self.heading):
            raise StudyError(
                f"{place}: {len(cells)} cells under {len(self.heading)} headings",
                hint=f"is the row cut short, or does a number contain {self.parser.delimiter!r}?",
            )

    def position(self, column: ColumnName) -> int:
        """Index of a column that the mapping names."""
        if isinstance(column, int):
            if column > len(self.heading):
                raise StudyError(f"{self.where} has {len(self.heading)} columns, not {column}")
            return column - 1
        if column not in self.heading:
            raise StudyError(f"{self.where} has no column {column!r}", hint=self._columns(column))
        if self.heading.count(column) > 1:
            hint = (
                "give its position in place of its name (the first column is 1), or give each column its own name"
            )
            raise StudyError(f"{self.where} has several columns {column!r}", hint=hint)
        return self.heading.index(column)

    def _columns(self, wanted: str) -> str:
        """Hint for a missing column."""
        if not any(self.heading):
            return "its first line must be the heading"
        if len(self.heading) == 1:
            only = self.heading[0][:80]
            return f"its first line is one column, {only!r}: is it the heading, and is `delimiter` right?"
        if any(_is_number(cell) for cell in self.heading):
            return (
                f"its first line is {', '.join(self.heading)[:80]!r}: if the table has no heading, "
                "name its columns (`headings: [...]`)"
            )
        return did_you_mean(wanted, self.heading, kind="its columns") or ""

    def kept(self, lines: Sequence[_Line]) -> bytes:
        """Heading and rows of a run, for the store."""
        rows = [self.parser.delimiter.join(line.cells) for line in lines]
        return ("\n".join([self.head, *rows]) + "\n").encode()


def rows(raw: bytes, parser: CsvParser, where: str) -> Iterator[Row]:
    """Yield every run. Raises `StudyError` for a missing column or a cell that is no plausible number."""
    table = _Table(raw, parser, where)
    if parser.wide is not None:
        yield from _wide(table, parser)
    elif parser.tidy is not None:
        yield from _tidy(table, parser)
    else:
        yield from _plain(table, parser)


def _plain(table: _Table, parser: CsvParser) -> Iterator[Row]:
    parts = {part: table.position(column) for part, column in parser.parts.items()}
    figures = {name: _Figure(table, name, each) for name, each in parser.figures.items()}
    failed = None if parser.errors is None else table.position(parser.errors)
    lines = list(table.lines())
    table.distortions = (*_over_time(table, lines, parts, figures.values()), *_averaged(table, figures.values()))
    for line in lines:
        values = {name: each.of(line) for name, each in figures.items()}
        errors = None if failed is None else _count(line, failed, parser)
        yield _row(table, [line], _texts(line, parts), values, errors)


def _wide(table: _Table, parser: CsvParser) -> Iterator[Row]:
    wide = parser.wide
    assert wide is not None  # noqa: S101 - the caller has seen to it
    parts = {part: table.position(column) for part, column in parser.parts.items()}
    cells = {text: _Figure(table, wide.metric, Column(column=text, unit=wide.unit)) for text in wide.columns}
    lines = list(table.lines())
    table.distortions = _over_time(table, lines, parts, cells.values())
    for line in lines:
        for text, figure in cells.items():
            place = _Line(f"{line.place}, column {text}", line.cells)
            known = {**_texts(line, parts), wide.part: text}
            yield _row(table, [place], known, {wide.metric: figure.of(line)}, None)


def _tidy(table: _Table, parser: CsvParser) -> Iterator[Row]:
    """Rows of the same parts are one run; a metric that comes again begins the next one."""
    tidy = parser.tidy
    assert tidy is not None  # noqa: S101 - the caller has seen to it
    parts = {part: table.position(column) for part, column in parser.parts.items()}
    named = table.position(tidy.metric)
    figures = {
        each.text: _Figure(table, name, Column(column=tidy.value, unit=each.unit))
        for name, each in tidy.metrics.items()
    }
    runs: list[tuple[dict[str, str], dict[str, float | None], list[_Line]]] = []
    open_runs: dict[tuple[str, ...], int] = {}
    for line in table.lines():
        figure = figures.get(line.cells[named].strip())
        if figure is None:
            continue
        texts = _texts(line, parts)
        at = open_runs.get(tuple(texts.values()))
        if at is None or figure.metric in runs[at][1]:
            at = open_runs[tuple(texts.values())] = len(runs)
            runs.append((texts, {}, []))
        runs[at][1][figure.metric] = figure.of(line)
        runs[at][2].append(line)
    for texts, values, lines in runs:
        yield _row(table, lines, texts, values, None)


def _over_time(
    table: _Table, lines: Sequence[_Line], parts: Mapping[str, int], used: Collection[_Figure]
) -> tuple[str, ...]:
    """The distortion of rows that are windows: a clock that is no figure goes on from row to row of one kind."""
    figures = {at for figure in used for at in figure.at}
    for clock, name in enumerate(table.heading):
        if clock in figures or not names_a_time(name):
            continue
        kinds: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for line in lines:
            kind = tuple(line.cells[at].strip() for at in parts.values() if at != clock)
            kinds[kind].append(line.cells[clock].strip())
        if has_even_steps(list(kinds.values())):
            return ("windows-for-runs",)
    return ()


def _averaged(table: _Table, figures: Collection[_Figure]) -> tuple[str, ...]:
    """The distortion of percentiles that are averages by their headings."""
    of = [(figure.metric, words_of(table.heading[at])) for figure in figures for at in figure.at]
    averaged = any(_PERCENTILE.search(metric) and _AVERAGE.search(words) for metric, words in of)
    return ("percentiles-averaged",) if averaged else ()


def _texts(line: _Line, parts: Mapping[str, int]) -> dict[str, str]:
    return {part: line.cells[at].strip() for part, at in parts.items()}


def _row(
    table: _Table,
    lines: Sequence[_Line],
    parts: Mapping[str, str],
    values: Mapping[str, float | None],
    errors: float | None,
) -> Row:
    place, kept, parser = lines[0].place, table.kept(lines), table.parser
    needed = "throughput" if "throughput" in parser.metrics else None
    if needed is not None and values.get(needed) is None:
        return Row(place, parts, None, f"no throughput in {place}", kept)
    if needed is None and all(value is None for value in values.values()):
        return Row(place, parts, None, f"no figure in {place}", kept)
    if parser.errors is not None and errors is None:
        return Row(place, parts, None, f"no count of errors in {place}", kept)
    if needed is not None and values[needed] == 0:
        return Row(place, parts, None, f"no operation in {place}", kept)
    if errors:
        return Row(place, parts, None, f"{errors:g} errors", kept)
    return Row(place, parts, _measurement(values), None, kept, table.distortions)


class _Figure:
    """A metric and the column or columns that give it."""

    def __init__(self, table: _Table, metric: str, column: Column | Quotient) -> None:
        self.metric, self._column, self._decimal = metric, column, table.parser.decimal
        wanted = (column.column,) if isinstance(column, Column) else (column.count, column.duration)
        self.at = [table.position(each) for each in wanted]

    def of(self, line: _Line) -> float | None:
        """Value of a row, per second or in ms; `None` if a cell of it is empty."""
        values = [_number(line.cells[at], self._decimal, line.place) for at in self.at]
        value = values[0]
        if value is None or any(each is None for each in values):
            return None
        if value < 0:
            raise StudyError(f"{line.place}: {self.metric} cannot be {value:g}", hint=_DECLINED)
        if isinstance(self._column, Quotient):
            took_s = (values[1] or 0.0) * _TO_MS[self._column.unit] / 1e3
            if took_s <= 0:
                raise StudyError(f"{line.place}: a duration of {values[1]:g} gives no throughput", hint=_DECLINED)
            figure = value / took_s
        else:
            figure = value if self._column.unit == PER_SECOND else value * _TO_MS[self._column.unit]
        if figure > LARGEST_FIGURE:
            raise StudyError(
                f"{line.place}: {self.metric} of {value:g} {self._column.unit} is not plausible",
                hint="check its unit",
            )
        return figure


def _count(line: _Line, at: int, parser: CsvParser) -> float | None:
    value = _number(line.cells[at], parser.decimal, line.place)
    if value is not None and value < 0:
        raise StudyError(f"{line.place}: {parser.errors} cannot be {value:g}")
    return value


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _number(cell: str, decimal: str, place: str) -> float | None:
    """Parse a number; `None` for an empty cell. Separators of thousands are refused, as 1.234 is ambiguous."""
    text = cell.strip()
    if not text:
        return None
    other = "." if decimal == "," else ","
    try:
        value = float(
            text.replace("_", "?").replace(other, "?").replace(decimal, ".")
        )  # Python takes 1_000 for 1000
    except ValueError as error:
        mark = f"thousands separators are refused; for decimals after {other!r}, set `decimal: {json.dumps(other)}`"
        hint = mark if _GROUPED.fullmatch(text) else _DECLINED
        raise StudyError(f"{place}: {text!r} is not a number", hint=hint) from error
    if not math.isfinite(value):
        raise StudyError(f"{place}: {text} is not a finite number", hint=_DECLINED)
    return value


def _measurement(figures: Mapping[str, float | None]) -> Measurement:
    """Make a measurement; tables lack the number of operations."""
    from tare.analyze.metrics import metric_named  # statistics are slow to import, and only tables need this

    kinds = dict.fromkeys(kind for name in figures if (kind := metric_named(name).operation))
    return Figures(
        figures.get("throughput"),
        latency=_times(figures, ""),
        kinds={kind: Kind(_times(figures, f"{kind}_")) for kind in kinds},
    ).measurement()


def _times(figures: Mapping[str, float | None], prefix: str) -> Times:
    mean, p50, p95, p99 = (figures.get(f"{prefix}latency_{name}") for name in ("mean", "p50", "p95", "p99"))
    return Times(mean, p50=p50, p95=p95, p99=p99)
