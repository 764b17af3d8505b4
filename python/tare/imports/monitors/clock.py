"""Dates and times in the logs of monitors, as seconds by the log's own clock."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from tare.imports.monitors import Value

TIME = r"\d{1,2}:\d\d:\d\d(?: ?[AP]M)?"
_TIME = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?: ?([AP])M)?")
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)|(\d\d?)([/.])(\d\d?)[/.](\d{4}|\d\d)")
HEADER = re.compile(r"Linux \S+ \(.*?\)\s+(\S+)\s+\S+\s+\((\d+) CPU\)")
"""First line of each tool of sysstat: date, and number of CPUs."""


def day(text: str) -> date | None:
    """A date: ISO, month/day/year unless the month cannot be one, or day.month.year."""
    match = _DAY.search(text)
    if match is None:
        return None
    year, month, of_month, first, mark, second, short = match.groups()
    try:
        if year:
            return date(int(year), int(month), int(of_month))
        swapped = mark == "." or int(first) > 12
        numbers = (second, first) if swapped else (first, second)
        return date(int(short) + (2000 if len(short) == 2 else 0), int(numbers[0]), int(numbers[1]))
    except ValueError:
        return None


def seconds(on: date, text: str) -> float | None:
    """A date and a time of the day, as if that were UTC."""
    match = _TIME.search(text)
    if match is None:
        return None
    hour, minute, second, half = match.groups()
    hours = int(hour) if half is None else int(hour) % 12 + (12 if half == "P" else 0)
    at = datetime(on.year, on.month, on.day, tzinfo=UTC) + timedelta(
        hours=hours, minutes=int(minute), seconds=int(second)
    )
    return at.timestamp()


class DayClock:
    """Times of a day that go on over midnight."""

    def __init__(self, on: date | None) -> None:
        self._on = on
        self._last: float | None = None

    def at(self, text: str) -> float | None:
        """Seconds of a time; one that is before the last one by over an hour is of the next day."""
        if self._on is None:
            return None
        now = seconds(self._on, text)
        if now is not None and self._last is not None and now < self._last - 3600:
            self._on += timedelta(days=1)
            now = seconds(self._on, text)
        self._last = now
        return now


def add(values: list[Value], more: Iterable[Value]) -> None:
    """Add values of one time. Raises `ValueError` for a second one of the same thing: the log has several days."""
    known = {(each.quantity, each.subject) for each in values}
    for value in more:
        if (value.quantity, value.subject) in known:
            raise ValueError("it has a time of the day twice: give a log of one day, or sadf's JSON")
        values.append(value)
