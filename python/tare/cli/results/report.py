"""`tare report`: report on a store, in the terminal or as a file."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli.own_terminal import own_terminal
from tare.errors import StudyError
from tare.run.ending import ending_of
from tare.run.resume import StudyState
from tare.store import Store, open_store
from tare.store.read import kept_until_exit
from tare.store_place import StorePlace, parse_store_url

if TYPE_CHECKING:
    from tare.record.run_record import RunRecord
    from tare.report.content import Report
    from tare.study.model import Study


class Format(StrEnum):
    """Output formats, as the command line names them."""

    TERMINAL = "terminal"
    HTML = "html"
    MD = "md"
    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    PAPER = "paper"
    BENCHSTAT = "benchstat"
    OPENMETRICS = "openmetrics"


_FORMATS = f"Output format: {', '.join(Format)}."


_OF_RUNS = (Format.BENCHSTAT, Format.OPENMETRICS)
_ANALYSED = {Format.PARQUET: "csv", Format.PAPER: "html", **dict.fromkeys(_OF_RUNS, "csv")}
"""Formats that show what the exporter of another one reads."""


class Table(StrEnum):
    """Contents of the rows of CSV and Parquet."""

    ESTIMATES = "estimates"
    OBSERVATIONS = "observations"


def report(
    store: Annotated[
        StorePlace,
        typer.Argument(
            parser=parse_store_url, metavar="STORE", help="Store of `tare run`, finished or still running."
        ),
    ],
    style: Annotated[Format, typer.Option("--format", metavar="FORMAT", help=_FORMATS)] = Format.TERMINAL,
    output: Annotated[
        Path | None, typer.Option(help="File to write instead of stdout; a folder with --format paper.")
    ] = None,
    table: Annotated[Table | None, typer.Option(help="Rows of CSV and Parquet (default: estimates).")] = None,
    runs: Annotated[
        list[str] | None, typer.Option("--run", help="Run to draw over time in HTML; repeatable.")
    ] = None,
) -> None:
    """Show the overhead of each arm against the baseline.

    `--format paper` writes a table and a paragraph on methods in LaTeX, BibTeX, and every figure as SVG and PDF.

    Exit code 1: no arm could be compared with the baseline, or the control arm differs from it, which makes the
    study invalid. The report says why.
    """
    _check(style, table, runs, to_file=output is not None)
    # Drawing charts is slow to import.
    from tare.report import EXPORTERS
    from tare.report.content import build_report, readable
    from tare.report.write import refuse_place, write

    if style is not Format.PAPER:
        refuse_place(output)
    opened = open_store(store)
    exporter = EXPORTERS[_ANALYSED.get(style, style.value)]
    people = exporter.for_people
    with kept_until_exit() as kept:
        plan, records = opened.plan, opened.records()
        ending, calibration = ending_of(plan, StudyState.from_records(records)), _calibration(plan.study, records)
        content = build_report(plan.study, records, len(plan.runs), ending, calibration, for_people=people)
        kept.extend((records, content))
    shown = readable(plan.study, records, for_people=people)[1]
    content = exporter.complete(content, opened, shown, runs or ())
    text: str | bytes
    if style is Format.PAPER and output is not None:
        from tare.report.paper import write_paper

        for path in write_paper(content, output):
            sys.stdout.write(f"{path}\n")
        _end(content)
        return
    if style in _OF_RUNS:
        text = _of_runs(opened, style)
    elif style is Format.PARQUET or table is Table.OBSERVATIONS:
        text = _rows(opened, content, style, table or Table.ESTIMATES)
    elif style is Format.TERMINAL and output is None:
        text = exporter(content, **own_terminal())
    else:
        text = exporter(content)
    if output is None:
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode(encoding, errors="replace"))
    else:
        write(text, output)
    _end(content)


def _end(content: Report) -> None:
    if content.analysis.invalid or not content.analysis.estimated:
        raise typer.Exit(1)


def _calibration(study: Study, records: tuple[RunRecord, ...]) -> str | None:
    """Line on the calibration of the machine that made the runs; `None` for imported runs."""
    if study.imported is not None:
        return None
    from tare.calibrate.quote import quote_for  # slow to import
    from tare.sites.layout import default_layout

    return quote_for(records, default_layout().calibration)


def _check(style: Format, table: Table | None, runs: list[str] | None, *, to_file: bool) -> None:
    if table is not None and style not in (Format.CSV, Format.PARQUET):
        raise StudyError(f"--table has no effect with --format {style}", hint="use it with csv or parquet")
    if runs and style not in (Format.HTML, Format.MD, Format.PAPER):
        raise StudyError(f"--run has no effect with --format {style}", hint="use it with html or md")
    if style is Format.PAPER and not to_file:
        raise StudyError("--format paper writes several files", hint="name a folder with --output")
    if style is Format.PARQUET and not to_file and sys.stdout.isatty():
        raise StudyError("a terminal cannot show Parquet", hint="name a file with --output")


def _rows(opened: Store, content: Report, style: Format, table: Table) -> str | bytes:
    """Render one of the frames that `tare.open_store` gives as a file."""
    from tare.report.frames.estimates import estimates
    from tare.report.frames.files import as_csv, as_parquet
    from tare.report.frames.observations import observations

    if table is Table.OBSERVATIONS:
        frame = observations(opened.plan.study, opened.records())
    else:
        frame = estimates(content.study, content.analysis)
    return as_parquet(frame) if style is Format.PARQUET else as_csv(frame)


def _of_runs(opened: Store, style: Format) -> str:
    """Render every metric of every run in another tool's format."""
    from tare.report.frames.benchmarks import as_benchstat, as_openmetrics
    from tare.report.frames.observations import observations

    frame = observations(opened.plan.study, opened.records())
    return as_benchstat(frame) if style is Format.BENCHSTAT else as_openmetrics(frame)
