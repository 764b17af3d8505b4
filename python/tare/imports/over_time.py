"""Tables over time, whose rows are windows of a run."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from tare.imports.headings import is_numeric, words_of

_TIME = re.compile(r"\b(?:time|timestamp|datetime|date|seconds?|secs?|elapsed|clock|ts|t|interval)\b")
_ALIKE, _MANY = 0.01, 4
"""Relative difference of equal steps, and steps that do not all grow by chance."""


def goes_on(heading: str, columns: Sequence[Sequence[str]]) -> bool:
    """Whether a column is a time that grows from row to row: rows of such a table are windows, and no runs."""
    return names_a_time(heading) and all(_grows(each) for each in columns)


def names_a_time(heading: str) -> bool:
    """Whether a heading names a time or a date."""
    return _TIME.search(words_of(heading)) is not None


def has_even_steps(columns: Sequence[Sequence[str]]) -> bool:
    """Whether numbers grow by equal steps wherever there are several, and often enough not to do so by chance."""
    steps = [_steps(each) for each in columns if len(each) > 1]
    return all(map(_are_alike, steps)) and max(map(len, steps), default=0) >= _MANY


def _grows(texts: Sequence[str]) -> bool:
    """Whether texts grow; a few numbers must have equal steps, as a few durations may grow by chance."""
    if not is_numeric(texts) or not all(texts):
        return len(texts) > 1 and all(one < other for one, other in itertools.pairwise(texts))
    steps = _steps(texts)
    return min(steps, default=0) > 0 and ((len(steps) > 1 and _are_alike(steps)) or len(steps) >= _MANY)


def _steps(texts: Sequence[str]) -> list[float]:
    """Differences between numbers; none for other texts."""
    if not is_numeric(texts) or not all(texts):
        return []
    return [float(other) - float(one) for one, other in itertools.pairwise(texts)]


def _are_alike(steps: Sequence[float]) -> bool:
    return min(steps, default=0) > 0 and max(steps) - min(steps) <= _ALIKE * max(steps)
