"""`tare sweep`: one arm at rising numbers of threads, to find its full load."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tare.analyze.knee import Knee, knee_of
from tare.cli.planned import known, loaded
from tare.cli.running import carried_out
from tare.cli.sweep_table import render
from tare.errors import StudyError
from tare.plan.expand import expand
from tare.plan.sweep import sweep_of
from tare.run.resume import Done, remaining

NO_GOOD_RESULT = 1
"""A run failed for good, or too few are good to tell of a knee."""
_THREADS = "1,2,4,8,16,32,64,128"
_MOST_THREADS = 100_000


class Format(StrEnum):
    """What stdout gets."""

    TEXT = "text"
    JSON = "json"


def sweep(  # noqa: PLR0913, PLR0917 - one parameter an option
    study: Annotated[str, typer.Argument(help="A study that comes with tare, a directory, or a study file.")],
    threads: Annotated[str, typer.Option(help="Numbers of threads to try, parted by commas.")] = _THREADS,
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="Runs of each.")] = 3,
    share: Annotated[
        list[float] | None, typer.Option(min=0.01, max=0.99, help="A share of full load to find as well.")
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Which of its arms (default: the baseline).")] = None,
    scale: Annotated[str | None, typer.Option(help="One of the study's scales (default: full).")] = None,
    store: Annotated[Path | None, typer.Option(help="Where results go (default: NAME-sweep-SCALE-store).")] = None,
    output: Annotated[Format, typer.Option("--format", help="What to print at the end.")] = Format.TEXT,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, failures only.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Run one arm at rising numbers of threads; tell full load, and the threads that give two thirds of it.

    Each number of threads is run so often, all in random order; broken off, the same command goes on.
    """
    swept = sweep_of(loaded(study, scale), known().workloads, _counts(threads), repetitions, arm)
    plan = expand(swept)
    path = store or Path(f"{swept.name}-{swept.scale}-store")
    with carried_out(plan, path, quiet=quiet) as writer:
        records = writer.records()
    knee = knee_of(plan.study, records, tuple(share or (0.66,)))
    units = (str(record.measurement["unit"]) for record in records if record.measurement)
    _print(swept.question, next(units, "operations"), knee, output)
    if knee.full is None or remaining(plan, Done.of(records)):
        raise typer.Exit(NO_GOOD_RESULT)


def _counts(text: str) -> tuple[int, ...]:
    counts = []
    for word in text.split(","):
        if not word.strip().isdecimal() or not 0 < int(word) <= _MOST_THREADS:
            raise StudyError(f"{word.strip()!r} is no number of threads", hint=f"such as --threads {_THREADS}")
        counts.append(int(word))
    return tuple(counts)


def _print(title: str, unit: str, knee: Knee, output: Format) -> None:
    if output is Format.JSON:
        text = json.dumps({"unit": unit, **asdict(knee)}, indent=2) + "\n"
    else:
        text = render(title, unit, knee, width=Console().width)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
