"""`tare report`: what a store says, in the terminal or as a file."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tare.calibrate.quote import quote_for
from tare.run.ending import ending_of
from tare.run.resume import Done
from tare.sites.layout import default_layout
from tare.store import open_store


class Format(StrEnum):
    """The exporters, as the command line calls them."""

    TERMINAL = "terminal"
    HTML = "html"
    MD = "md"
    CSV = "csv"
    JSON = "json"


def report(
    store: Annotated[Path, typer.Argument(help="A store that `tare run` has written, also while it still writes.")],
    style: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TERMINAL,
    output: Annotated[Path | None, typer.Option(help="File to write instead of stdout.")] = None,
) -> None:
    """Show the overhead of each arm against the baseline.

    Ends with 1 where no arm could be compared with the baseline, and where the control arm differs from it, so that
    the study is invalid; the report then says why.
    """
    from tare.analyze.timelines import timelines
    from tare.analyze.views.of_run import telling
    from tare.report import EXPORTERS, build_report, terminal, write  # drawing charts is slow to import
    from tare.report.quantities import with_quantities

    opened = open_store(store)
    plan, records = opened.plan, opened.records()
    ending, calibration = ending_of(plan, Done.of(records)), quote_for(records, default_layout().calibration)
    content = build_report(plan.study, records, len(plan.runs), ending, calibration)
    content = with_quantities(content, records, opened.raw)
    if style is Format.HTML:
        views, lines = telling(opened, records, plan.study.baseline), timelines(plan.study, opened, records)
        content = replace(content, views=views, timelines=lines)
    if style is Format.TERMINAL and output is None:
        console = Console()
        text = terminal.render(content, width=console.width, colour=console.is_terminal and not console.no_color)
    else:
        text = EXPORTERS[style.value](content)
    if output is None:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    else:
        write(text, output)
    if content.analysis.invalid or not content.analysis.estimated:
        raise typer.Exit(1)
