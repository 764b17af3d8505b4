"""Reading of the runs in one file of imported results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tare.errors import RunFailed, StudyError
from tare.imports.contents import Source, text_of
from tare.imports.mapping import CsvParser, MappingFile, ToolParser
from tare.imports.parsers import Parser, Report
from tare.imports.parsers.figures import plausible
from tare.imports.parsers.pgbench_log import is_one_thread
from tare.imports.parsers.registry import PARSERS
from tare.imports.table import rows
from tare.record.measurement import Measurement
from tare.run.unreadable import read_or_failed
from tare.store.rows import WINDOW, canonical, of_window, windows_text
from tare.study.suggest import did_you_mean

MAYBE = "?"
"""After what reports say, if some do not: such a part is `UNSAID`."""
UNSAID = "unsaid"
REPORT = "report"
"""Part that numbers the reports of a file."""


@dataclass(frozen=True)
class ReadRun:
    """A run in a file: its parts, its measurement or the reason why it failed, and its raw text.

    `place`: the file, with the line for a table or a second report. `says`: what the report says of itself.
    `series`: windows and histogram of the measurement as texts, if it does not have them itself.
    """

    place: str
    parts: Mapping[str, str]
    measurement: Measurement | None
    failure: str | None
    raw: bytes
    says: Mapping[str, str] = field(default_factory=dict)
    distortions: tuple[str, ...] = ()
    series: Mapping[str, str] = field(default_factory=dict)


def read_file(source: Source, file: MappingFile, *, packed: bool = False) -> Iterator[ReadRun]:
    """Yield the runs of a file: its reports, or the rows of a table. Raises `StudyError` for an unreadable file.

    `packed`: without an object for each window, for another process.
    """
    raw = source.read()
    place = str(source.path) if source.member is None else f"{source.path}/{source.member}"
    if isinstance(file.parser, CsvParser):
        yield from (
            ReadRun(row.place, row.parts, row.measurement, row.failure, row.raw, distortions=row.distortions)
            for row in rows(raw, file.parser, place)
        )
    else:
        yield from (_of_whole_run(run, source) for run in _reports(raw, file.parser, place, packed=packed))


def _of_whole_run(run: ReadRun, source: Source) -> ReadRun:
    """Refuse the log of one thread of pgbench, whose rate is a part of the run's."""
    if run.measurement is None or "log" not in run.says or not is_one_thread(source.path_or_member, source.has):
        return run
    return replace(run, measurement=None, failure="the log of one thread of several: join all (`cat PREFIX.PID*`)")


def _reports(raw: bytes, parser: ToolParser, place: str, *, packed: bool) -> Iterator[ReadRun]:
    text = text_of(raw) if raw.strip() else ""
    if not text:
        why = "the file is empty" if text is not None else "the file is not a text file"
        yield ReadRun(place, dict.fromkeys(parser.parts, ""), None, why, raw)
        return
    reports = read_reports(text, PARSERS[parser.name], parser.name, parser.max_error_share)
    for number, report in enumerate(reports, start=1):
        alone = len(reports) == 1
        says = {**report.says, REPORT: str(number)}
        at = place if alone else f"{place}:{report.line}"
        parts = {
            part: says.get(name.removesuffix(MAYBE)) or _unsaid(report, part, at, parser)
            for part, name in parser.parts.items()
        }
        kept = raw if alone else report.text.encode()
        measured, series = (report.whole, dict[str, str]()) if not packed else _packed(report)
        yield ReadRun(at, parts, measured, report.failure, kept, says, report.distortions, series)


def _packed(report: Report) -> tuple[Measurement | None, dict[str, str]]:
    """A measurement without its windows and its histogram, and these as texts."""
    measured, columns = report.measurement, report.columns
    if measured is None:
        return None, {}
    windows = windows_text(columns.rows(WINDOW) if columns else map(of_window, measured.windows))
    series = {"windows": windows, "histogram": canonical(measured.histogram)}
    return replace(measured, windows=(), histogram=()), series


def read_reports(text: str, parser: Parser, name: str, max_error_share: float = 0.0) -> list[Report]:
    """Reports of a text; a parser that cannot take it, or a figure that cannot be meant, makes a failed one."""
    try:
        with read_or_failed(f"what {name} printed"):
            reports = list(parser.reports(text, max_error_share))
    except RunFailed as error:
        return [Report(None, str(error), text=text)]
    return [_plausible(report) for report in reports] or [Report(None, f"it holds no report of {name}", text=text)]


def _unsaid(report: Report, part: str, place: str, parser: ToolParser) -> str:
    """Text of a part that a report does not say: none if it failed. Raises `StudyError` for a good one."""
    if report.failure is not None:
        return ""
    name, known = parser.parts[part].removesuffix(MAYBE), (*PARSERS[parser.name].says, REPORT)
    if name not in known:
        hint = did_you_mean(name, known, kind=f"names that {parser.name} says")
        raise StudyError(f"parser.parts.{part}: no report of {parser.name} says its {name!r}", hint=hint)
    if parser.parts[part].endswith(MAYBE):
        return UNSAID
    raise StudyError(
        f"{place}: the report does not say its {name!r}",
        hint=f"read {{{part}}} from the files' names, or let it be {UNSAID!r} (`{part}: {name}{MAYBE}`)",
    )


def _plausible(report: Report) -> Report:
    try:
        if report.measurement is not None:
            plausible(report.measurement, report.columns)
    except RunFailed as error:
        return Report(None, str(error), report.says, report.line, report.text)
    return report
