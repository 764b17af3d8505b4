"""`tare views`: show what other monitors would have printed for a run."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tare.errors import StudyError
from tare.one_line import harmless
from tare.store_place import StorePlace, parse_store_url

if TYPE_CHECKING:
    from tare.analyze.views.summary import Views


def views(  # noqa: PLR0913, PLR0917 - one argument an option
    run: Annotated[str, typer.Argument(help="A run of the store, or a directory that `tare-probe record` wrote.")],
    store: Annotated[
        StorePlace | None, typer.Option(parser=parse_store_url, metavar="STORE", help="Store of the run.")
    ] = None,
    every: Annotated[float, typer.Option(help="Sampling interval of the tools, in seconds.")] = 1.0,
    everything: Annotated[  # noqa: FBT002 - typer's way
        bool, typer.Option("--all", help="Include each CPU, idle devices and idle processes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,  # noqa: FBT002 - an option, given by name
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Show what docker stats, mpstat and others would have printed for a run, and why they differ."""
    if as_json and as_csv:
        raise StudyError("--json and --csv exclude each other", hint="give one of them")
    if not 0 < every < math.inf:
        raise StudyError(f"--every {every:g} is not an interval", hint="give seconds above 0")
    from tare.report.views import files as views_files
    from tare.report.views import table as views_table  # polars is slow to import

    computed = _found(run, store, every)
    if as_json:
        text = views_files.as_json(computed)
    elif as_csv:
        text = views_files.as_csv(computed)
        if not computed.complete:
            sys.stderr.write("tare: the trace is incomplete: its end or some rows are missing\n")
    else:
        console = Console()
        colour = console.is_terminal and not console.no_color
        text = views_table.render(computed, width=console.width, colour=colour, everything=everything)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))


def _found(run: str, store: StorePlace | None, every: float) -> Views:
    from tare.analyze.views.summary import views_of, views_of_run
    from tare.store import open_store
    from tare.store.trace import read_trace
    from tare.study.suggest import did_you_mean

    if store is None:
        return views_of(read_trace(Path(run)), every)
    opened = open_store(store)
    records = opened.records()
    attempts = [record for record in records if record.run_id == run]
    if not attempts:
        known = dict.fromkeys(record.run_id for record in records)
        raise StudyError(f"the store {store} has no run {run}", hint=did_you_mean(run, known, kind="runs"))
    record = next((each for each in attempts if each.outcome.ok), attempts[-1])
    if not record.outcome.ok:
        why = record.outcome.reason or "its record does not say why"
        sys.stderr.write(harmless(f"tare: {run} is a failed run: {why}\n"))
    return views_of_run(opened, record, every).views
