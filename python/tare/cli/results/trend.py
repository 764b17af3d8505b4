"""`tare trend`: the overheads of many stores of one study in time, and where they changed."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tare.errors import StudyError
from tare.store_place import StorePlace, parse_store_url
from tare.study.suggest import did_you_mean


class Format(StrEnum):
    """Output format."""

    TERMINAL = "terminal"
    MD = "md"
    JSON = "json"


def trend(
    stores: Annotated[
        list[StorePlace],
        typer.Argument(parser=parse_store_url, metavar="STORE...", help="Stores of one study, in any order."),
    ],
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric to show (default: throughput); repeatable.")
    ] = None,
    style: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TERMINAL,
    output: Annotated[Path | None, typer.Option(help="File to write instead of stdout.")] = None,
) -> None:
    """Show the overheads of many stores of one study in time, and where they changed.

    Exit code 5: the stores hold different studies.
    """
    from tare.analyze.comparison import Recorded  # scipy is slow to import
    from tare.analyze.trend import trend as of
    from tare.report.trend.content import Kept, build_trend
    from tare.report.trend.formats import as_json, markdown, terminal
    from tare.report.write import refuse_place, write
    from tare.store import open_store

    refuse_place(output)
    opened = [open_store(place) for place in stores]
    ids = [store.id for store in opened]
    if len(set(ids)) < len(ids) or len(ids) < 2:
        what = "the same store, or a copy of it, is given twice" if len(ids) > 1 else "a trend needs two stores"
        raise StudyError(what, hint="name stores of separate runs")
    kept = []
    for store in opened:
        recorded = Recorded(store.plan, store.records())
        began = min((time.began_at for run in recorded.records for time in run.phases), default=None)
        kept.append(Kept(str(store.place), recorded, began))
    kept.sort(key=lambda each: (each.began_at is None, each.began_at or 0.0))
    wanted = tuple(dict.fromkeys(metric or ("throughput",)))
    made = build_trend(kept, of([each.recorded for each in kept], wanted))
    _refuse_unknown(wanted, {each.metric for each in made.series})
    console = Console()
    if style is Format.JSON:
        text = as_json(made)
    elif style is Format.MD:
        text = markdown(made)
    elif output is not None:
        text = terminal(made)
    else:
        text = terminal(made, width=console.width, colour=console.is_terminal and not console.no_color)
    if output is None:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    else:
        write(text, output)


def _refuse_unknown(wanted: tuple[str, ...], shown: set[str]) -> None:
    from tare.analyze.metrics import METRICS

    for name in wanted:
        if name not in shown:
            hint = did_you_mean(name, METRICS, kind="metrics")
            raise StudyError(f"no arm of all stores has a metric {name[:60]!r}", hint=hint)
