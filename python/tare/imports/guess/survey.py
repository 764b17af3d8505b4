"""What is below a directory: reports of load generators, tables, and what is neither."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import StudyError
from tare.imports.contents import Source, is_archive, sources, text_of
from tare.imports.in_order import in_order
from tare.imports.monitors.registry import monitor_of
from tare.imports.parsers import Report
from tare.imports.parsers.registry import PARSERS
from tare.imports.reading import read_reports

_NO_RESULTS = (
    ".md", ".rst", ".html", ".py", ".sh", ".ipynb", ".yaml", ".yml", ".js", ".c", ".go", ".java", ".png", ".pdf",
    ".svg", ".gnuplot", ".r", ".jpg", ".lua", ".xml", ".toml",
)  # fmt: skip
"""Endings of files that quote a report, or that make or show results."""
_TABLES = (".csv", ".tsv")
_INTERVAL = r"(?:\[ *\d+s ?\] thds: |progress: ).*\n"
_ALIKE = re.compile(rf"^({_INTERVAL})(?:{_INTERVAL})+", re.MULTILINE)
"""Interval lines of sysbench and pgbench, most of a log: a survey needs none but the first."""
FEW_ERRORS = 0.01
"""Share of errors with which a guessed mapping takes a run; the rule `errors` names it. TPC-C rolls 1 % of its new
orders back, which sysbench counts as errors."""


@dataclass(frozen=True)
class SeenFile:
    """A file of reports. `name`: path below the directory, without the ending of a compression."""

    name: str
    reports: tuple[Report, ...]

    @property
    def good(self) -> tuple[Report, ...]:
        """Reports that have a measurement."""
        return tuple(report for report in self.reports if report.measurement is not None)

    @property
    def has_errors(self) -> bool:
        """Whether a good report has errors, which are few then."""
        return any(report.measurement.errors for report in self.reports if report.measurement)

    @property
    def is_log(self) -> bool:
        """Whether it is a log beside which there may be the report of the same run."""
        return any("log" in report.says for report in self.reports)


@dataclass(frozen=True)
class SeenTable:
    """A file that is named as a table."""

    name: str
    text: str


@dataclass(frozen=True)
class Survey:
    """Files of a directory. `by_parser`: parser → its files; `unread`: why a file was not read → how many.

    `names`: every file, also those that cannot be results. `monitors`: tool → logs of a monitor.
    """

    directory: Path
    by_parser: Mapping[str, Sequence[SeenFile]]
    tables: tuple[SeenTable, ...]
    unknown: tuple[str, ...]
    unread: Mapping[str, int]
    names: tuple[str, ...] = ()
    monitors: Mapping[str, Sequence[str]] = field(default_factory=dict)


def survey(directory: Path) -> Survey:
    """Read every file below a directory that may be a result."""
    by_parser: dict[str, list[SeenFile]] = {}
    tables, unknown, unread = list[SeenTable](), list[str](), Counter[str]()
    names, monitors = list[str](), dict[str, list[str]]()

    def damaged(error: StudyError) -> None:
        unread[str(error)] += 1

    for source, seen in in_order(_look, sources(directory, damaged), here=lambda each: each.member is not None):
        name = source.names[-1]
        names.append(name)
        if seen is None:
            continue
        if seen.unread is not None:
            unread[seen.unread] += 1
        if seen.parser is not None:
            by_parser.setdefault(seen.parser, []).append(SeenFile(name, seen.reports))
        elif seen.monitor is not None:
            monitors.setdefault(seen.monitor, []).append(name)
        elif seen.table is not None:
            tables.append(SeenTable(name, seen.table))
        elif seen.unread is None:
            unknown.append(name)
    for parser, files in by_parser.items():
        by_parser[parser] = [file for file in files if not file.is_log] or files
    return Survey(directory, by_parser, tuple(tables), tuple(unknown), unread, tuple(names), monitors)


@dataclass(frozen=True)
class _Seen:
    """What a file is: reports, a log of a monitor, a table, or nothing known. `unread`: why not all is read."""

    parser: str | None = None
    reports: tuple[Report, ...] = ()
    monitor: str | None = None
    table: str | None = None
    unread: str | None = None


def _look(source: Source) -> _Seen | None:
    """Read a file; `None` if its name says that it is no result."""
    name = source.names[-1].lower()
    if name.endswith(_NO_RESULTS):
        return None
    if source.member is not None and is_archive(source.member):
        return _Seen(unread=f"{source.name} is an archive in an archive (unpack it)")
    try:
        text = text_of(source.read())
    except StudyError as error:
        return _Seen(unread=str(error))
    return _contents(source.name, text, is_table=name.endswith(_TABLES)) if text else _Seen()


def _contents(name: str, text: str, *, is_table: bool) -> _Seen:
    tools = [tool for tool, parser in PARSERS.items() if parser.recognises(text)]
    if not tools:
        monitor = monitor_of(text)
        return _Seen(monitor=monitor, table=text if is_table and monitor is None else None)
    reports = read_reports(_ALIKE.sub(r"\1", text), PARSERS[tools[0]], tools[0], FEW_ERRORS)
    more = f"{name} holds output of {' and '.join(tools)}, of which the first is read (split the file)"
    return _Seen(tools[0], tuple(reports), unread=more if len(tools) > 1 else None)
