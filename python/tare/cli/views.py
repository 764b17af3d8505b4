"""`tare views`: what other monitors would have printed of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tare.errors import StudyError


def views(
    run: Annotated[str, typer.Argument(help="A directory that `tare-probe record` wrote.")],
    every: Annotated[float, typer.Option(help="Seconds between two samples of the tools.")] = 1.0,
    everything: Annotated[  # noqa: FBT002 - typer's way
        bool, typer.Option("--all", help="Single CPUs too, and devices and processes that did nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,  # noqa: FBT002
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False,  # noqa: FBT002
) -> None:
    """Show what docker stats, mpstat and others would have printed, and why they differ."""
    if as_json and as_csv:
        raise StudyError("--json and --csv exclude each other", hint="give one of them")
    if not every > 0:
        raise StudyError(f"--every {every:g} is no interval", hint="give seconds above 0")
    from tare.analyze.views.summary import views_of  # polars is slow to import
    from tare.report import views_files, views_table
    from tare.store.trace import read_trace

    found = views_of(read_trace(Path(run)), every)
    if as_json:
        text = views_files.as_json(found)
    elif as_csv:
        text = views_files.as_csv(found)
    else:
        console = Console()
        colour = console.is_terminal and not console.no_color
        text = views_table.render(found, width=console.width, colour=colour, everything=everything)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
