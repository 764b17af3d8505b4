"""Checks of property values, as YCSB itself reads `yes` as false, and `hash` as another order than `hashed`."""

from __future__ import annotations

import re
from collections.abc import Callable

Value = Callable[[str], str | None]
"""Check of a value: returns words to follow "must be", or `None` if the value is valid."""

_MOST = 2**31 - 1
_TABLE_OPTIONS = re.compile(r"(\w+ *= *[^=\s][^=]*)?|CLUSTERING ORDER BY .+", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def plain(value: str) -> str | None:
    """Text that a property file can hold without escapes; Java reads such files as Latin-1."""
    fits = value.isascii() and value.isprintable() and "\\" not in value
    return None if fits else "plain ASCII on one line, without backslashes"


def flag(value: str) -> str | None:
    """`true` or `false`; Java would read anything else as false."""
    return None if value in {"true", "false"} else "true or false"


def whole(least: int = 0) -> Value:
    """Make the check for a whole number from `least` that fits into Java's int."""

    def wrong(value: str) -> str | None:
        if _WHOLE.fullmatch(value) and least <= int(value) <= _MOST:
            return None
        return f"a whole number from {least} to {_MOST}"

    return wrong


def real(most: float | None = None) -> Value:
    """Make the check for a number from 0 to `most`."""

    def wrong(value: str) -> str | None:
        if _NUMBER.fullmatch(value) and 0 <= float(value) <= (1e300 if most is None else most):
            return None
        return "a number from 0 on" if most is None else f"a number from 0 to {most:,.0f}"

    return wrong


def one_of(*names: str) -> Value:
    """Make the check for one of these words."""

    def wrong(value: str) -> str | None:
        return None if value in names else f"one of {', '.join(names)}"

    return wrong


def table_options(value: str) -> str | None:
    """Options after `WITH` in CQL, checked by form only: `compaction = {…} AND …`."""
    fits = plain(value) is None and all(_TABLE_OPTIONS.fullmatch(part) for part in re.split(r" (?i:and) ", value))
    return None if fits else "options of a table in CQL, such as compaction = {…}"
