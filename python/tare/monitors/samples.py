"""Samples of every monitor except the probe: one row for each quantity, subject and sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.errors import RunFailed

if TYPE_CHECKING:
    import polars as pl

SECOND_NS = 1_000_000_000
_PROMPT_NS = 5_000_000
"""Most time that passes between the tool's reading and the stamp of its line."""


@dataclass(frozen=True)
class Moment:
    """The period that a sample covers, and the uncertainty of its ends."""

    from_ns: int
    to_ns: int
    within_ns: int


@dataclass(frozen=True)
class Row:
    """One value of a sample."""

    quantity: str
    subject: str
    moment: Moment
    value: float
    is_gauge: bool = False


@dataclass(frozen=True)
class Line:
    """One line of a tool's output, and the time when it came."""

    came_ns: int
    text: str


def columns() -> dict[str, type[pl.DataType]]:
    """Columns of a table of samples, with their types.

    Times are CLOCK_MONOTONIC; a gauge has `from_ns` = `to_ns`. `within_ns`: how far the tool's own reading may lie
    from them. Quantities, subjects and units are those of `tare views` (docs/reference/views.md).
    """
    import polars as pl  # slow to import, and plans do without

    return {
        "tool": pl.String,
        "quantity": pl.String,
        "subject": pl.String,
        "from_ns": pl.Int64,
        "to_ns": pl.Int64,
        "value": pl.Float64,
        "within_ns": pl.Int64,
    }


def table(tool: str, rows: Iterable[Row]) -> pl.DataFrame:
    """Make a table with these `columns`."""
    import polars as pl

    cells = [
        (
            tool,
            row.quantity,
            row.subject,
            row.moment.to_ns if row.is_gauge else row.moment.from_ns,
            row.moment.to_ns,
            row.value,
            row.moment.within_ns,
        )
        for row in rows
    ]
    return pl.DataFrame(cells, schema=columns(), orient="row")


def stamped(text: str, what: str) -> list[Line]:
    """Parse the output of stamper.py. Raises `RunFailed` for a line without a stamp or an end: it was cut short."""
    *ended, unended = text.split("\n")
    lines = []
    for line in ended:
        stamp, tab, rest = line.partition("\t")
        if not tab or not stamp.isdecimal():
            raise cut_short(what, line)
        lines.append(Line(int(stamp), rest))
    if unended:
        raise cut_short(what, unended)
    return lines


def cut_short(what: str, line: str) -> RunFailed:
    """Make the error of an output of which a line is not whole."""
    return RunFailed(f"the output of {what} is cut short", hint=f"it ends with {line[-60:]!r}")


def moments(came_ns: Sequence[int], interval_s: float) -> list[Moment]:
    """Periods of samples that a tool reads at regular intervals, from the times when its lines came.

    Deviations from the regular times are delays.
    """
    interval_ns = round(interval_s * SECOND_NS)
    late = [at - n * interval_ns for n, at in enumerate(came_ns)]
    within = max(late) - min(late) + _PROMPT_NS if late else 0
    begins = [came_ns[0] - interval_ns, *came_ns[:-1]] if came_ns else []
    return [Moment(begin, end, within) for begin, end in zip(begins, came_ns, strict=True)]
