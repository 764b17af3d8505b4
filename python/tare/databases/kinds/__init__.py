"""What kind of value a server's settings take, by its own account: nonsense is refused before images are built.

Only what holds for later versions too: a number where a number is taken, none below zero where none can be. Upper
bounds and the words of an enumeration move from version to version, and stay the server's to judge.
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
    """`takes`: the forms of a value, as a server's file has it; `expected`: the same in words."""

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
"""Kinds in the modules of this folder. A number may have any unit of either server."""


_KNOWN: Mapping[str, Mapping[str, str]] = {
    server: {name: kind for kind, names in settings.items() for name in names.split()}
    for server, settings in (("mariadb", mariadb.SETTINGS), ("postgresql", postgresql.SETTINGS))
}


def check_kind(server: str, name: str, value: Value) -> None:
    """Raise `StudyError` where a setting that `server` is known to have cannot take a value of this kind."""
    declared = _KNOWN[server].get(name.replace("-", "_"))
    if declared is None:
        return
    numeric = declared not in ("flag", "word")
    kind = KINDS[declared]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if (isinstance(value, bool) and numeric) or not kind.takes.fullmatch(text.strip()):
        raise StudyError(
            f"the server setting {name!r} must be {kind.expected}, not {value!r}",
            hint="see the server's manual for the values that it takes",
        )
