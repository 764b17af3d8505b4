"""Figures of many runs at once: a column of floats each, NaN where a run does not tell.

A record is a tree, and asking 100,000 trees one by one for each figure that a rule combines takes far longer than
the rule. Here a figure is read once from all of them, and rules are expressions over columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tare.analyze.numbers import is_mapping
from tare.run.record import RunRecord

T = TypeVar("T")
Column = NDArray[np.float64]
"""A value a run, in the order of the runs; NaN where it is not known."""
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]
"""Which runs, by their places in the columns."""
_Trees = Sequence[Mapping[str, Any] | None]
_PLAIN = frozenset({float, int, type(None)})


class Columns:
    """Runs, a row each. What was read is kept: a figure that two rules ask for is read once."""

    def __init__(self, records: Sequence[RunRecord]) -> None:
        self.records = records
        self._columns: dict[object, Column] = {}
        self._flags: dict[object, Flags] = {}
        self._made: dict[tuple[str, ...], Any] = {}
        self._trees: dict[tuple[str, ...], _Trees | None] = {}

    def number(self, part: str, *path: str) -> Column:
        """The finite number at a path of keys in a part of the record (`usage`), as `number_at` reads it."""
        whole = (part, *path)
        if whole not in self._columns:
            self._columns[whole] = self._read(whole)
        return self._columns[whole]

    def trees(self, part: str, *path: str) -> Sequence[Mapping[str, Any] | None]:
        """The mapping of each run at a path of keys, `None` where there is none."""
        trees = self._at((part, *path))
        return [None] * len(self.records) if trees is None else trees

    def of(self, read: Callable[[RunRecord], float | None]) -> Column:
        """A function's value of each run: for figures that are no expression over others."""
        if read not in self._columns:
            self._columns[read] = np.array([read(run) for run in self.records], dtype=float)
        return self._columns[read]

    def where(self, holds: Callable[[RunRecord], bool]) -> Flags:
        """Of which runs it holds."""
        if holds not in self._flags:
            self._flags[holds] = np.array([holds(run) for run in self.records], dtype=bool)
        return self._flags[holds]

    def once(self, name: tuple[str, ...], make: Callable[[], T]) -> T:
        """What is worked out from several of them, made when it is first asked for."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def _read(self, path: tuple[str, ...]) -> Column:
        trees = self._at(path[:-1])
        if trees is None:
            return np.full(len(self.records), np.nan)
        key = path[-1]
        values = [None if tree is None else tree.get(key) for tree in trees]
        if not _PLAIN.issuperset(map(type, values)):
            values = [value if _is_number(value) else None for value in values]
        column = np.array(values, dtype=float)
        column[np.isinf(column)] = np.nan
        return column

    def _at(self, path: tuple[str, ...]) -> _Trees | None:
        """The trees at a path; `None` where no run has one, and nothing below needs to be asked for."""
        if path not in self._trees:
            self._trees[path] = self._look(path)
        return self._trees[path]

    def _look(self, path: tuple[str, ...]) -> _Trees | None:
        *above, key = path
        outer = self._at(tuple(above)) if above else ()
        if outer is None:
            return None
        values = [None if tree is None else tree.get(key) for tree in outer] if above else self._parts(key)
        trees: list[Mapping[str, Any] | None] = [value if is_mapping(value) else None for value in values]
        return trees if any(tree is not None for tree in trees) else None

    def _parts(self, name: str) -> list[Any]:
        return [getattr(run, name) for run in self.records]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def known(column: Column) -> Flags:
    """Which runs tell it."""
    flags: Flags = ~np.isnan(column)
    return flags


def ratio(column: Column, by: Column) -> Column:
    """NaN where one is not known, or nothing can be divided by."""
    usable = known(column) & known(by) & (by != 0)
    quotients: Column = np.divide(column, by, out=np.full(len(column), np.nan), where=usable)
    return quotients


def or_zero(column: Column) -> Column:
    """Nothing where it is not known: of what only counts where it is there."""
    return np.where(np.isnan(column), 0.0, column)


def reached(limits: Sequence[tuple[Column, float]]) -> Column:
    """1 where any of these figures is at its limit, 0 where none of those known is, NaN where none is known."""
    at_limit = np.any([column >= limit for column, limit in limits], axis=0)
    return np.where(np.any([known(column) for column, _ in limits], axis=0), at_limit, np.nan)


def known_values(values: Column) -> list[float]:
    """The known values."""
    those: list[float] = values[known(values)].tolist()
    return those


def figure(column: Column) -> float | None:
    """The value of a single run."""
    value = float(column[0])
    return None if math.isnan(value) else value
