"""Tables: their rows, and in which form they hold the figures of runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.imports.guess.names import Column, Names, names_of
from tare.imports.guess.survey import SeenTable
from tare.imports.headings import NUMBER, Figure, figure_of, is_numeric, words_of
from tare.imports.over_time import goes_on

_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Rows:
    """A table. `headed`: whether its first line is a heading; else its columns are `column1`, `column2`, etc."""

    delimiter: str
    heading: list[str]
    body: list[list[str]]
    headed: bool = True

    def column(self, heading: str) -> list[str]:
        """Texts below a heading."""
        at = self.heading.index(heading)
        return [row[at] for row in self.body]


@dataclass(frozen=True)
class Tables:
    """Tables with the same figures. `heading`: columns that all have once."""

    names: Names
    tables: Sequence[Rows]
    heading: Sequence[str]

    @property
    def first(self) -> Rows:
        """One of them."""
        return self.tables[0]

    @property
    def numeric(self) -> list[str]:
        """Headings above numbers only."""
        return [
            name for name in self.heading if name and all(is_numeric(rows.column(name)) for rows in self.tables)
        ]

    def texts(self, heading: str) -> tuple[str, ...]:
        """Texts below a heading, over all tables."""
        return tuple(text for rows in self.tables for text in rows.column(heading))


@dataclass(frozen=True)
class TableForm:
    """What the cells of tables are.

    `cells`: heading → text of each run, over all tables. `runs_of`: runs of each table. `wide`: headings of columns
    whose every cell is a run; `between`: the part that they are levels of, for each run. `metric`, `value`: columns
    of a table with a row for each metric, where a figure's `column` is a text of `metric`.
    """

    source: Tables
    figures: tuple[Figure, ...]
    cells: Mapping[str, tuple[str, ...]]
    runs_of: tuple[int, ...]
    wide: tuple[str, ...] = ()
    between: Column | None = None
    metric: str = ""
    value: str = ""

    @property
    def names(self) -> Names:
        """Names of the files."""
        return self.source.names

    @property
    def inside(self) -> list[str]:
        """Headings that are parts of a run, empty for the part that headings are levels of."""
        return [*self.cells, *([] if self.between is None else [""])]

    @property
    def unread(self) -> list[str]:
        """Headings above numbers that the form does not use."""
        used = {*self.wide, *self.cells, self.value, *(figure.column for figure in self.figures)}
        return [name for name in self.source.numeric if name not in used]

    @property
    def columns(self) -> list[Column]:
        """Parts of the files' names, columns that say what a run was, and the wide part: a text for each run."""
        of_names = [
            Column(
                tuple(text for text, runs in zip(column.values, self.runs_of, strict=True) for _ in range(runs)),
                column.beside,
            )
            for column in self.names.columns
        ]
        inside = [Column(texts, words_of(heading)) for heading, texts in self.cells.items()]
        return [*of_names, *inside, *([] if self.between is None else [self.between])]


def alike(tables: Sequence[SeenTable]) -> list[Tables]:
    """Tables by what their headings name, the form with most rows first; tables over time are left out."""
    forms: dict[tuple[str, ...], dict[str, Rows]] = {}
    for table in tables:
        if (read := _rows(table.text)) is not None:
            named = tuple(filter(figure_of, read.heading)) or tuple(read.heading)
            forms.setdefault((read.delimiter, *named), {})[table.name] = read
    ordered = sorted(forms.values(), key=lambda each: -sum(len(rows.body) for rows in each.values()))
    return [made for kept in ordered if (made := _tables(kept)) is not None]


def _tables(kept: Mapping[str, Rows]) -> Tables | None:
    names, tables = names_of(tuple(kept)), list(kept.values())
    heading = [name for name in tables[0].heading if all(rows.heading.count(name) == 1 for rows in tables)]
    over_time = any(goes_on(name, [rows.column(name) for rows in tables]) for name in heading)
    return None if over_time or set(names.names) != set(kept) else Tables(names, tables, heading)


def _rows(text: str) -> Rows | None:
    """The rows of a table that are as wide as its first one; `None` if there are none."""
    delimiter = max(_DELIMITERS, key=text.split("\n", 1)[0].count)
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), delimiter=delimiter)]
    except csv.Error:
        return None
    rows = [row for row in rows if any(row)]
    headed = bool(rows) and not any(NUMBER.fullmatch(cell) for cell in rows[0])
    if not rows or (headed and len(rows[0]) == 1):
        return None
    heading = rows[0] if headed else [f"column{n}" for n in range(1, len(rows[0]) + 1)]
    body = [row for row in (rows[1:] if headed else rows) if len(row) == len(heading)]
    return Rows(delimiter, heading, body, headed) if body else None
