"""Figures of many runs at once: each is a column of floats, with NaN where a run lacks the figure.

Reading each figure from 100,000 records one by one takes far longer than evaluating a rule. Here a figure is read
once from all records, by the names of its fields, and rules are expressions over columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tare.analyze.numbers import is_mapping
from tare.record.run_record import RunRecord

T = TypeVar("T")
Column = NDArray[np.float64]
"""One value for each run, in the order of the runs; NaN if unknown."""
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]
"""Indices of runs in the columns."""
_Trees = Sequence[Any]
_PLAIN = frozenset({float, int, type(None)})


class Columns:
    """Runs, one row each. Columns are cached, so that a figure that two rules use is read once."""

    def __init__(self, records: Sequence[RunRecord]) -> None:
        self.records = records
        self._columns: dict[object, Column] = {}
        self._flags: dict[object, Flags] = {}
        self._made: dict[tuple[str, ...], Any] = {}
        self._trees: dict[tuple[str, ...], _Trees | None] = {}

    def number(self, part: str, *path: str) -> Column:
        """Column of the finite number at a path of fields, or of keys of a mapping, in a part of the record.

        Raises `AttributeError` for a field that the part's type does not have.
        """
        whole = (part, *path)
        if whole not in self._columns:
            self._columns[whole] = self._read(whole)
        return self._columns[whole]

    def trees(self, part: str, *path: str) -> Sequence[Any]:
        """Part of each run's record at such a path; `None` where there is none."""
        trees = self._at((part, *path))
        return [None] * len(self.records) if trees is None else trees

    def of(self, read: Callable[[RunRecord], float | None]) -> Column:
        """Column of a function's value for each run, for figures that are not expressions over columns."""
        if read not in self._columns:
            self._columns[read] = np.array([read(run) for run in self.records], dtype=float)
        return self._columns[read]

    def where(self, holds: Callable[[RunRecord], bool]) -> Flags:
        """Flags of the runs for which a predicate holds."""
        if holds not in self._flags:
            self._flags[holds] = np.array([holds(run) for run in self.records], dtype=bool)
        return self._flags[holds]

    def once(self, name: tuple[str, ...], make: Callable[[], T]) -> T:
        """Cached result of `make`, which runs on the first call with this name."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def _read(self, path: tuple[str, ...]) -> Column:
        trees = self._at(path[:-1])
        if trees is None:
            return np.full(len(self.records), np.nan)
        key = path[-1]
        values = _of_each(trees, key)
        if not _PLAIN.issuperset(map(type, values)):
            values = [value if _is_number(value) else None for value in values]
        column = np.array(values, dtype=float)
        column[np.isinf(column)] = np.nan
        return column

    def _at(self, path: tuple[str, ...]) -> _Trees | None:
        """Trees at a path; `None` if no run has one, so that nothing below needs to be read."""
        if path not in self._trees:
            self._trees[path] = self._look(path)
        return self._trees[path]

    def _look(self, path: tuple[str, ...]) -> _Trees | None:
        *above, key = path
        outer = self._at(tuple(above)) if above else ()
        if outer is None:
            return None
        values = _of_each(outer, key) if above else self._parts(key)
        parts = [value if _has_parts(value) else None for value in values]
        return parts if any(part is not None for part in parts) else None

    def _parts(self, name: str) -> list[Any]:
        return [getattr(run, name) for run in self.records]


def _has_parts(value: object) -> bool:
    return is_mapping(value) or hasattr(value, "__dataclass_fields__")


def _of_each(parts: Sequence[Any], key: str) -> list[Any]:
    """Field, or value of a key, of each part; `None` where there is none. Parts at one path have one type."""
    first = next((part for part in parts if part is not None), None)
    if is_mapping(first):
        return [part.get(key) if is_mapping(part) else None for part in parts]
    return [None if part is None else getattr(part, key) for part in parts]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def known(column: Column) -> Flags:
    """Flags of the runs whose value is known."""
    flags: Flags = ~np.isnan(column)
    return flags


def ratio(column: Column, by: Column) -> Column:
    """Quotient of two columns; NaN where either is unknown or the divisor is 0."""
    usable = known(column) & known(by) & (by != 0)
    quotients: Column = np.divide(column, by, out=np.full(len(column), np.nan), where=usable)
    return quotients


def or_zero(column: Column) -> Column:
    """Replace unknown values by 0, for figures that count only if they exist."""
    return np.where(np.isnan(column), 0.0, column)


def reached(limits: Sequence[tuple[Column, float]]) -> Column:
    """Whether any figure is at its limit: 1 if so, 0 if no known figure is, NaN if none is known."""
    at_limit = np.any([column >= limit for column, limit in limits], axis=0)
    return np.where(np.any([known(column) for column, _ in limits], axis=0), at_limit, np.nan)


def known_values(values: Column) -> list[float]:
    """Known values of a column."""
    those: list[float] = values[known(values)].tolist()
    return those


def figure(column: Column) -> float | None:
    """Value of a column with a single run; `None` if unknown."""
    value = float(column[0])
    return None if math.isnan(value) else value
