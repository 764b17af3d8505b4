"""A result is a section: a title, typed columns, rows and a note. Each format has one renderer of sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from tare.analyze.estimate import Estimate, Finding
from tare.analyze.metrics import metric_named
from tare.report.figures import NONE, decimals_of, interval, percent, point
from tare.report.plain import plain

Format = Literal["terminal", "html", "md"]
EVERYWHERE: frozenset[Format] = frozenset({"terminal", "html", "md"})
PAGES: frozenset[Format] = frozenset({"html", "md"})
PAGE: frozenset[Format] = frozenset({"html"})
MARKDOWN: frozenset[Format] = frozenset({"md"})
TERMINAL: frozenset[Format] = frozenset({"terminal"})
TEXTS: frozenset[Format] = frozenset({"terminal", "md"})

_LONGEST = 400
"""Most characters of a text in a cell."""

Tone = Literal["", "better", "worse", "apart", "published"]
"""How a figure is set off: its interval shows a change for the better or worse, or that it is not zero; or others
published it."""


@dataclass(frozen=True)
class Remark:
    """A line beneath a figure, where there is room for it."""

    text: str
    kind: Literal["", "verdict", "published"] = ""


@dataclass(frozen=True)
class Cell:
    """A printed value."""

    text: str
    interval: str = ""
    """Shown beside or beneath the text; a terminal gives it a column of its own."""
    tone: Tone = ""
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column. `show`: prints one of its values; `None` is missing; a text or `Cell` is shown as it is."""

    title: str
    show: Callable[[Any], str | Cell] = str
    unit: str = ""
    left: bool = False
    """Left-aligned, for words."""
    brief: str = ""
    """Title in a terminal that is too narrow for all columns; empty: the same."""
    optional: int = 0
    """A terminal that is too narrow leaves out the columns with the highest number first; 0: never."""
    optional_interval: int = 0
    """The same for the intervals of this column."""
    formats: frozenset[Format] = EVERYWHERE

    def cell(self, value: object) -> Cell:
        """Print a value."""
        if isinstance(value, Cell):
            return value
        if isinstance(value, str):
            return Cell(plain(value, _LONGEST))
        shown = NONE if value is None else self.show(value)
        return shown if isinstance(shown, Cell) else Cell(shown)


@dataclass(frozen=True)
class Group:
    """Rows with one value in the first column, without it. `title`: that value; empty if rows are not grouped."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Section:
    """A part of the report. `name`: its anchor in a page. `rows`: a value for each column."""

    name: str
    title: str
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    note: tuple[str, ...] = ()
    """Paragraphs beneath the table that explain it."""
    lead: tuple[str, ...] = ()
    """Paragraphs above everything else."""
    items: tuple[str, ...] = ()
    """Sentences of a list above the table."""
    under: bool = False
    """Whether it is a part of the last section that is not."""
    grouped: bool = False
    """Whether neighbouring rows with equal first values form a group under that value."""
    fold: str = ""
    """What a page shows in place of the table until the reader opens it; empty: it is open."""
    closed: bool = False
    """Whether a page shows the title only until the reader opens it."""
    abreast: int = 0
    """Most columns beside the first in a terminal, which shows more in further tables; 0: no limit."""
    formats: frozenset[Format] = EVERYWHERE

    def table(self, form: Format) -> tuple[tuple[Column, ...], tuple[Group, ...]]:
        """Return the columns and the printed rows of a format; without the first column if rows are grouped."""
        at = [n for n, column in enumerate(self.columns) if form in column.formats]
        first = int(self.grouped)
        printed = [tuple(self.columns[n].cell(row[n]) for n in at) for row in self.rows]
        groups = groupby(printed, key=lambda row: row[0].text if self.grouped else "")
        return (
            tuple(self.columns[n] for n in at[first:]),
            tuple(Group(title, tuple(row[first:] for row in rows)) for title, rows in groups),
        )


@dataclass(frozen=True)
class Chapter:
    """A section with those under it."""

    head: Section
    parts: tuple[Section, ...]


def arm() -> Column:
    """Make the column of arms."""
    return Column("arm", left=True)


def share(fraction: float) -> str:
    """Print a fraction of a whole: `40.0 %`."""
    return percent(fraction, signed=False)


def change(estimate: Estimate) -> Cell:
    """Print an estimate: `-7.6 %` with `[-10.3, -4.8]`."""
    return Cell(percent(estimate.point, decimals_of(estimate)), interval(estimate), _apart(estimate))


def published(fraction: float) -> Cell:
    """Print a published effect."""
    return Cell(percent(fraction), tone="published")


def figure(estimate: Estimate) -> Cell:
    """Print an estimate without saying what it shows."""
    return Cell(percent(estimate.point, decimals_of(estimate)), interval(estimate))


def of_finding(finding: Finding) -> Cell:
    """Print a finding's point and interval without saying what it shows."""
    return Cell(point(finding), interval(finding.estimate))


def effect(finding: Finding) -> Cell:
    """Print a finding: its point, interval, verdict and published value, in the tone of what it shows."""
    judgement, remarks = finding.judgement, []
    if judgement.verdict is not None:
        remarks.append(Remark(judgement.verdict.value, "verdict"))
    return Cell(point(finding), interval(finding.estimate), _tone(finding), tuple(remarks))


def effect_and_published(finding: Finding) -> Cell:
    """Print a finding, with the published value beneath it."""
    cell = effect(finding)
    if finding.published is None:
        return cell
    remark = Remark(f"published {percent(finding.published)}", "published")
    return Cell(cell.text, cell.interval, cell.tone, (*cell.remarks, remark))


def _tone(finding: Finding) -> Tone:
    if not finding.is_supported or finding.estimate.point is None:
        return ""
    return "better" if (finding.estimate.point > 0) == metric_named(finding.metric).more_is_better else "worse"


def _apart(estimate: Estimate) -> Tone:
    apart = estimate.low is not None and estimate.high is not None and (estimate.low > 0 or estimate.high < 0)
    return "apart" if apart else ""
