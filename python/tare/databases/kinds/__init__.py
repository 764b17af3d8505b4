"""Kinds of values that a server's settings take, as the server reports them, to refuse nonsense before any build.

Checks only what holds for later versions too: a number where the server takes a number, and none below zero where
none can be. Upper bounds and words of an enumeration change between versions, so the server judges them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tare.databases.kinds import mariadb, postgresql
from tare.errors import StudyError

Value = str | int | float | bool


@dataclass(frozen=True)
class Kind:
    """A kind of value. `takes`: its forms in the server's file; `expected`: the same in words."""

    takes: re.Pattern[str]
    expected: str


_UNIT = r"([KMGTPE]|B|kB|MB|GB|TB|us|ms|s|min|h|d)?"
_WHOLE = rf"\d+(\.\d+)?([eE]\+?\d+)?\s*{_UNIT}|0x[0-9a-f]+|0[0-7]+"
_REAL = rf"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*{_UNIT}"
KINDS: Mapping[str, Kind] = {
    "flag": Kind(re.compile(r"on|off|true|false|yes|no|[01tfyn]", re.IGNORECASE), "true or false"),
    "word": Kind(re.compile(r"[A-Za-z0-9_.+-]+( [A-Za-z0-9_.+-]+)*"), "one of the server's words"),
    "count": Kind(re.compile(rf"\+?({_WHOLE})", re.IGNORECASE), "a number of 0 or more"),
    "whole": Kind(re.compile(rf"[-+]?({_WHOLE})", re.IGNORECASE), "a number"),
    "share": Kind(re.compile(rf"\+?({_REAL})", re.IGNORECASE), "a number of 0 or more"),
    "real": Kind(re.compile(rf"[-+]?({_REAL})", re.IGNORECASE), "a number"),
}
"""Kinds that the modules of this folder use. A number may have any unit of either server."""


_KNOWN: Mapping[str, Mapping[str, str]] = {
    server: {name: kind for kind, names in settings.items() for name in names.split()}
    for server, settings in (("mariadb", mariadb.SETTINGS), ("postgresql", postgresql.SETTINGS))
}


def check_kind(server: str, name: str, value: Value) -> None:
    """Raise `StudyError` if a known setting of `server` cannot take this value."""
    declared = _KNOWN[server].get(name.replace("-", "_"))
    if declared is None:
        return
    numeric = declared not in ("flag", "word")
    kind = KINDS[declared]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if (isinstance(value, bool) and numeric) or not kind.takes.fullmatch(text.strip()):
        raise StudyError(
            f"the server setting {name!r} must be {kind.expected}, not {value!r}",
            hint="see the server's manual for the values that it accepts",
        )
