"""`tare run`: study → plan → run → store."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tare.calibrate.quote import quote_for
from tare.cli.planned import planned
from tare.cli.progress import progress
from tare.cli.serve import page_beside
from tare.errors import StoreError
from tare.live.herald import Herald, heralded
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate
from tare.plan.model import Plan
from tare.report import EXPORTERS, build_report, terminal
from tare.report.quantities import with_quantities
from tare.run.ending import Ending, ending_of
from tare.run.execute import Desk, execute
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import local_engine, local_machine, refuse_without_rights
from tare.run.references import References, until_refused
from tare.run.resume import Done, remaining
from tare.sites.layout import default_layout
from tare.store import Store, Writer, open_store, resume_store
from tare.workloads import WORKLOADS

NO_GOOD_RESULT = 1
"""A run failed for good, or the control arm differs from the baseline."""
SIGNALLED = 128
"""As shells have it: 128 and the number of the signal."""


class Format(StrEnum):
    """What stdout gets."""

    TEXT = "text"
    JSON = "json"


def run(  # noqa: PLR0913, PLR0917 - one parameter an option
    study: Annotated[str, typer.Argument(help="A study that comes with tare, a directory, or a study file.")],
    scale: Annotated[str | None, typer.Option(help="One of the study's scales (default: full).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the order, in place of the study's own.")] = None,
    blocks: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Cap on blocks, in place of the study's own.")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Where results go (default: NAME-SCALE-store).")] = None,
    output: Annotated[Format, typer.Option("--format", help="What to print at the end.")] = Format.TEXT,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, failures only.")] = False,  # noqa: FBT002
    serve: Annotated[bool, typer.Option("--serve", help="Show the run as a page meanwhile.")] = False,  # noqa: FBT002
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of that page; 0: any that is free.")] = 0,
) -> None:
    """Run a study, or go on with one that was broken off; every finished run is kept."""
    plan = planned(study, scale, seed, blocks)
    path = store or Path(f"{plan.study.name}-{plan.study.scale}-store")
    if not _finished(path, plan):
        refuse_without_rights(plan, estimate(plan, data_sets(WORKLOADS)).disk_bytes)  # before there is a store
    interrupts = Interrupts()
    with resume_store(path, plan) as writer, interrupts.installed():
        try:
            with page_beside(path, wanted=serve, port=port):
                _run(plan, writer, interrupts, quiet=quiet)
        except Interrupted as interrupted:
            good = len(Done.of(writer.records()).good)
            sys.stderr.write(
                f"tare: broken off by {interrupted} with {good} runs done, of {len(plan.runs)} at most; what was "
                f"made is removed. The same command goes on from here (store: {path}).\n"
            )
            raise typer.Exit(SIGNALLED + interrupted.number) from interrupted
        done = Done.of(writer.records())
        ending = ending_of(plan, done)
        if ending is not None:
            writer.end(ending)
        valid = _show(writer, output, ending)
        if remaining(plan, done) or not valid:
            raise typer.Exit(NO_GOOD_RESULT)


def _finished(path: Path, plan: Plan) -> bool:
    """Whether the store has it all: then neither rights nor an engine are needed to show it."""
    try:
        return not remaining(plan, Done.of(open_store(path).records()))
    except StoreError:
        return False


def _run(plan: Plan, writer: Writer, interrupts: Interrupts, *, quiet: bool) -> None:
    done = Done.of(writer.records())
    if not remaining(plan, done):
        return
    herald = Herald(writer.now, plan, writer.id, default_layout().work)
    with (
        local_engine() as engine,
        progress(plan, done, quiet=quiet) as shown,
        heralded(herald, shown) as observer,
    ):
        machine = replace(local_machine(plan, engine, interrupts), references=References(writer.records()))
        runs = execute(plan, machine, Desk(writer.id, done, writer.staging), observer)
        for records in until_refused(runs, observer):
            writer.commit_all(records)


def _show(store: Store, output: Format, ending: Ending | None) -> bool:
    """The overhead table, or the findings as JSON, on standard output. Returns whether the study is valid."""
    records = store.records()
    calibration = quote_for(records, default_layout().calibration)
    report = build_report(store.plan.study, records, len(store.plan.runs), ending, calibration)
    report = with_quantities(report, records, store.raw)
    valid = not report.analysis.invalid
    if output is Format.JSON:
        text = EXPORTERS["json"](report)
    else:
        console = Console()
        text = terminal.render(report, width=console.width, colour=console.is_terminal and not console.no_color)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    return valid
