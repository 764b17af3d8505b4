"""`tare sweep`: one arm with more and more threads, to find its full load."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tare.analyze.knee import NEARLY_ALL, Knee, Point, knee_of
from tare.cli.study.format import Format
from tare.cli.study.planned import known, loaded
from tare.cli.study.running import run_plan
from tare.errors import StudyError
from tare.plan.expand import expand
from tare.plan.sweep import sweep_of
from tare.record.emulated import MARK, marked, sides_text
from tare.report.figures import NONE, amount
from tare.report.plain import plain
from tare.run.resume import StudyState, remaining
from tare.store_place import StorePlace, parse_store_url

_AT_LIMIT = 0.9
"""Share of busy CPU that counts as the limit, as in the rule `client-bottleneck`."""
_ANY_WIDTH = 1000
"""Wider than any table, to find out how much width a table needs."""
_LEFT_OUT = ("of the most", "least to most", "p95 ms")
"""Columns that are left out if there is no room, in this order, before a figure is cut."""
_SCATTER = 0.1
"""Relative spread of runs above which they are reported: twice the tolerance that recognises full load."""


NO_GOOD_RESULT = 1
"""Exit code: a run failed for good, or too few are good to find a knee."""
_THREADS = "1,2,4,8,16,32,64,128"
_MOST_THREADS = 100_000


def render(title: str, unit: str, knee: Knee, *, width: int = 100) -> str:
    """Render table and conclusions as text; `unit`: what throughput counts."""
    out = io.StringIO()
    console = Console(file=out, width=max(width, 80), highlight=False)
    console.print(Text(marked(plain(title, 400), MARK if knee.emulated else None), style="bold"))
    console.print()
    console.print(_table(unit, knee, console))
    console.print()
    for line in conclusions(unit, knee):
        console.print(Text(line))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def conclusions(unit: str, knee: Knee) -> Iterator[str]:
    """Yield what the table says, in sentences."""
    if knee.emulated:
        on = f"the {sides_text(knee.emulated)} ran on an emulated CPU"
        yield f"Emulated: {on}; on real hardware the knee is elsewhere."
    if knee.full is None:
        yield "Fewer than two numbers of threads have a valid run: no knee can be estimated."
        return
    full = knee.at(knee.full)
    load = f"{marked('Full load', MARK if knee.emulated else None)}: {knee.full} threads"
    rate = f"{amount(full.throughput_per_s)} {unit}/s"
    yield f"{load}, {rate}, the fewest within {100 * NEARLY_ALL:g} % of the maximum."
    for share, threads in knee.shares.items():
        yield f"{100 * share:g} % of it: {threads} threads, interpolated linearly."
    if _scattered(full):
        yield f"Runs of {knee.full} threads differ by more than 10 % of their mean: the knee may be elsewhere."
    if knee.rising:
        most = "the most tried" if knee.full == knee.points[-1].threads else "the most with a good run"
        yield f"Throughput was still rising at {knee.full} threads, {most}; full load may lie beyond."
    if _at_limit(full.client_busy) and not _at_limit(full.sut_busy):
        yield "At that point the client had no CPU time left, but the server did: this is the client's limit."


def _scattered(point: Point) -> bool:
    if point.throughput_per_s is None or point.low is None or point.high is None:
        return False
    return point.high - point.low > _SCATTER * point.throughput_per_s


def _at_limit(busy: float | None) -> bool:
    return busy is not None and busy >= _AT_LIMIT


def _table(unit: str, knee: Knee, console: Console) -> Table:
    """Table of the points. Columns without any value, and columns that do not fit, are left out."""
    titles = ("threads", "runs", f"{unit}/s", "least to most", "of the most", "p95 ms", "SUT CPU", "client CPU", "")
    most = max((each.throughput_per_s for each in knee.points if each.throughput_per_s is not None), default=None)
    rows = [_cells(point, most, knee.full) for point in knee.points]
    columns = {title: cells for title, *cells in zip(titles, *rows, strict=True) if set(cells) != {NONE}}
    bold = [point.threads == knee.full for point in knee.points]
    options = console.options.update_width(_ANY_WIDTH)
    for title in _LEFT_OUT:
        if console.measure(_table_of(columns, bold), options=options).maximum <= console.width:
            break
        columns.pop(title, None)
    return _table_of(columns, bold)


def _table_of(columns: Mapping[str, Sequence[str]], bold: Sequence[bool]) -> Table:
    made = [Column(title, justify="left" if not title else "right", no_wrap=True) for title in columns]
    table = Table(*made, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for stands_out, cells in zip(bold, zip(*columns.values(), strict=True), strict=True):
        table.add_row(*(Text(cell, style="bold" if stands_out else "") for cell in cells))
    return table


def _cells(point: Point, most: float | None, full: int | None) -> tuple[str, ...]:
    rate = point.throughput_per_s
    return (
        str(point.threads),
        str(point.runs),
        _amount(rate),
        NONE if point.runs < 2 else f"{_amount(point.low)} to {_amount(point.high)}",
        NONE if rate is None or not most else f"{100 * rate / most:.0f} %",
        NONE if point.latency_p95_ms is None else f"{point.latency_p95_ms:.3g}",
        _share(point.sut_busy),
        _share(point.client_busy),
        "full load" if point.threads == full else "",
    )


def _amount(value: float | None) -> str:
    return NONE if value is None else amount(value)


def _share(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f} %"


def sweep(  # noqa: PLR0913, PLR0917 - one parameter an option
    study: Annotated[str, typer.Argument(help="A study that comes with tare, a directory, or a study file.")],
    threads: Annotated[str, typer.Option(help="Numbers of threads to try, separated by commas.")] = _THREADS,
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="Runs for each number.")] = 3,
    share: Annotated[
        list[float] | None,
        typer.Option(min=0.01, max=0.99, help="Also find the threads for this share of full load."),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Arm to run (default: the baseline).")] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of the study (default: full).")] = None,
    store: Annotated[
        StorePlace | None,
        typer.Option(
            parser=parse_store_url, metavar="STORE", help="Where results go (default: NAME-sweep-SCALE-store)."
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="What to print at the end.")] = Format.TEXT,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print failures only, no progress.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Increase threads on one arm until it saturates; find the threads that reach two thirds of full load.

    Runs are made in random order. After an interruption, the same command resumes.
    """
    swept = sweep_of(loaded(study, scale), known().workloads, _counts(threads), repetitions, arm)
    plan = expand(swept)
    path = store or parse_store_url(f"{swept.name}-{swept.scale}-store")
    with run_plan(plan, path, quiet=quiet) as writer:
        records = writer.records()
    knee = knee_of(plan.study, records, tuple(share or (0.66,)))
    units = (record.measurement.unit for record in records if record.measurement)
    _print(swept.question, next(units, "operations"), knee, output)
    if knee.full is None or remaining(plan, StudyState.from_records(records)):
        raise typer.Exit(NO_GOOD_RESULT)


def _counts(text: str) -> tuple[int, ...]:
    counts = []
    for word in text.split(","):
        if not word.strip().isdecimal() or not 0 < int(word) <= _MOST_THREADS:
            raise StudyError(f"{word.strip()!r} is not a number of threads", hint=f"such as --threads {_THREADS}")
        counts.append(int(word))
    return tuple(counts)


def _print(title: str, unit: str, knee: Knee, output: Format) -> None:
    if output is Format.JSON:
        text = json.dumps({"unit": unit, **asdict(knee)}, indent=2) + "\n"
    else:
        text = render(title, unit, knee, width=Console().width)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
