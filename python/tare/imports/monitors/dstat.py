"""dstat's and dool's CSV (`--output`)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import ClassVar

from tare.imports.monitors import ALL, MODES, Log, Sample, Value, number
from tare.imports.monitors.clock import seconds

_HEAD = re.compile(r'"(?:Dstat|Dool|pcp-dstat) \S+ CSV output"')
_YEAR = re.compile(r"(\d\d \w{3} (\d{4})) \d\d:\d\d:\d\d(?: (\w+))?")
_FORMS = ("%d-%m", "%b-%d")
"""Days as dstat and dool write them, without a year."""
_DISK, _REQUESTS = re.compile(r"dsk/(.+)"), re.compile(r"io/(.+)")


class Dstat:
    """One CSV, of one call or several that were appended."""

    title: ClassVar[str] = "dstat, dool (CSV)"

    def recognises(self, text: str) -> bool:
        """Its first line."""
        return _HEAD.match(text) is not None

    def read(self, text: str) -> Log:
        """Read the rows; the first below each heading is an average since boot."""
        rows = [row for row in csv.reader(io.StringIO(text)) if row]
        groups, names = list[str](), list[str]()
        samples: list[Sample] = []
        year, is_utc, first = None, False, True
        for before, row in zip([[""], *rows], rows, strict=False):
            if match := next((found for cell in row if (found := _YEAR.search(cell))), None):
                year, is_utc = int(match.group(2)), match.group(3) in ("UTC", "GMT")
            if any(number(cell) is not None for cell in row[1:]) and names:
                if not first and len(row) == len(names):
                    samples.append(_sample(groups, names, row, year))
                first = False
            elif set(row) & {"usr", "read", "recv", "used"}:
                groups, names, first = _filled(before), row, True
        return Log(tuple(samples), is_utc=is_utc or "epoch" in names)


def _filled(cells: Sequence[str]) -> list[str]:
    """Names of groups, each above its first column only."""
    filled: list[str] = []
    for cell in cells:
        filled.append(cell or (filled[-1] if filled else ""))
    return filled


def _sample(groups: Sequence[str], names: Sequence[str], row: Sequence[str], year: int | None) -> Sample:
    at, values = None, list[Value]()
    groups = [*groups, *[groups[-1] if groups else ""] * (len(names) - len(groups))]
    for group, name, cell in zip(groups, names, row, strict=True):
        if name == "time" and year is not None:
            at = _moment(cell, year)
            continue
        value = number(cell)
        if value is None:
            continue
        if name == "epoch":
            at = value
        else:
            values += _values(group, name, value)
    return Sample(at, tuple(values))


def _values(group: str, name: str, value: float) -> Iterator[Value]:
    if group == "total cpu usage" and name in MODES:
        yield Value(MODES[name], ALL, value)
    elif (match := _DISK.fullmatch(group)) and name in ("read", "writ"):
        yield Value("read_kib" if name == "read" else "written_kib", match.group(1), value / 1024)
    elif (match := _REQUESTS.fullmatch(group)) and name in ("read", "writ"):
        yield Value("reads" if name == "read" else "writes", match.group(1), value)
    elif name == "util":
        yield Value("util", group, value)


def _moment(cell: str, year: int) -> float | None:
    day, _, time = cell.partition(" ")
    for form in _FORMS:
        try:
            return seconds(datetime.strptime(f"{year} {day}", f"%Y {form}").date(), time)
        except ValueError:
            continue
    return None
