"""`tare calibrate`: studies whose outcome is known beforehand, to tell what this machine is worth."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.calibrate.archive import Archive, Place
from tare.calibrate.kinds import KINDS
from tare.calibrate.pooled import Mean, Share, Smallest
from tare.calibrate.quote import interval, percent
from tare.calibrate.session import Session, calibrate
from tare.calibrate.studies import INJECTING
from tare.calibrate.summary import Identity, Summary, identity_of
from tare.cli.study.progress import progress
from tare.deployments.registry import DEPLOYMENTS
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.report.figures import duration
from tare.run.clock import SystemClock
from tare.run.events import Observer
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import Engine, local_engine, local_machine, refuse_without_rights
from tare.run.machine import Machine
from tare.run.parity.references import References
from tare.run.resume import StudyState
from tare.sites.engine import engine_facts
from tare.sites.facts import host_facts
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.workloads.registry import WORKLOADS

SIGNALLED = 128
"""As shells have it: 128 and the number of the signal."""
_BUSY = 0.25
"""Load of the last minute, for each CPU, from which on a machine is not left to itself."""
_DEPLOYMENTS = {**DEPLOYMENTS, **INJECTING}


def render(summary: Summary, *, width: int = 100) -> str:
    """All figures as text."""
    out = io.StringIO()
    console = Console(file=out, width=max(width, 80), highlight=False)
    console.print(Text(machine(summary.identity), style="bold"))
    effort = summary.effort
    if effort.studies == 0:
        console.print(Text("No study is finished yet; `tare calibrate` makes them."))
        return _plain(out)
    took = f"{effort.runs} runs, {effort.failed} of them failed, {duration(effort.machine_s)} of machine time"
    console.print(Text(f"{effort.studies} studies: {took}."))
    console.print()
    console.print(same(summary))
    console.print()
    if summary.injections:
        console.print(effects(summary))
        console.print()
    for line in shown(summary):
        console.print(Text(line))
    return _plain(out)


def machine(identity: Identity) -> str:
    """Hardware and versions in a line."""
    engine = f"{identity.engine} {identity.engine_version}" if identity.engine else "no engine"
    cpus = f"{identity.cpu_count} \N{MULTIPLICATION SIGN} {identity.cpu_model}"
    return f"{cpus}, {identity.memory_gib} GiB, Linux {identity.kernel}, {engine}"


def same(summary: Summary) -> Table:
    """False positives of two instances of the same."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("two of the same", "comparisons", "called different", "share, meant to be 5 %"):
        table.add_column(column)
    rows = {"all": summary.false_positives, **summary.by_deployment}
    for name, cells in rows.items():
        table.add_row(name, str(cells.of), str(cells.count), _share(cells))
    return table


def effects(summary: Summary) -> Table:
    """What came of each injection; effects are on throughput."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("injected", "studies", "truth", "estimate", "bias, points", "truth in 95 % interval"):
        table.add_column(column)
    for each in summary.injections:
        of = f"{each.covered.count} of {each.covered.of}"
        table.add_row(
            each.injection,
            str(each.estimate.n),
            _mean(each.truth),
            _mean(each.estimate),
            _mean(each.bias),
            f"{of}, {_share(each.covered)}" if each.covered.of else "not judged yet",
        )
    return table


def shown(summary: Summary) -> list[str]:
    """The smallest overhead that can be shown, a line each time."""
    if summary.spread is None or summary.block_s is None:
        return []
    head = (
        f"Two of the same differ by {100 * summary.spread:.2f} % from block to block (standard deviation), and a "
        f"block of three runs takes {summary.block_s:.1f} s. The smallest loss of throughput that is shown in "
        "half of all studies:"
    )
    return [head, *(_smallest(each) for each in summary.smallest)]


def _smallest(each: Smallest) -> str:
    minutes = f"  in {each.minutes:g} min"
    if each.overhead is None:
        return f"{minutes}: none, that is {each.blocks} blocks only"
    return f"{minutes}: {100 * each.overhead:.1f} % ({each.blocks} blocks)"


def _share(share: Share) -> str:
    return f"{percent(share.share)} % {interval(share)}"


def _mean(mean: Mean) -> str:
    if mean.point is None:
        return "\N{EM DASH}"
    bounds = "" if mean.low is None or mean.high is None else f" [{_signed(mean.low)}, {_signed(mean.high)}]"
    return f"{_signed(mean.point)} %{bounds}"


def _signed(value: float) -> str:
    return f"{100 * value:+.2f}"


def _plain(out: io.StringIO) -> str:
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


class KindName(StrEnum):
    """The kinds, as the command line calls them."""

    WORK = "work"
    QUOTA = "quota"
    DELAY = "delay"
    IO = "io"
    AA = "aa"


_KINDS = f"Only studies of these kinds: {', '.join(KindName)}; may be given several times."


def calibrate_machine(  # noqa: PLR0913, PLR0917 - one parameter an option
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Start no run after this time (default: until stopped).")
    ] = None,
    studies: Annotated[int | None, typer.Option(min=1, help="Stop after this number of studies.")] = None,
    only: Annotated[list[KindName] | None, typer.Option(metavar="KIND", help=_KINDS)] = None,
    home: Annotated[Path | None, typer.Option(help="tare's directory, in place of $TARE_HOME.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print earlier results; run nothing.")] = False,  # noqa: FBT002 - an option, given by name
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002 - an option, given by name
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, failures only.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Test this machine: measure identical servers and effects of known size as any study is measured.

    Results add to those of earlier calibrations. Ctrl-C stops it; the same command resumes.
    """
    layout = default_layout() if home is None else Layout(home.absolute())
    archive = Archive(layout.calibration)
    with local_engine() as engine:
        identity = _identity(engine, layout)
        summary = archive.summarise(identity)
        if not show:
            _warn_of_load(host_facts(LocalHost()))
            kinds = [kind.value for kind in only] if only else list(KINDS)
            _refuse(kinds, layout)
            summary = _calibrate(archive, identity, kinds, engine, layout, (minutes, studies), quiet=quiet)
    _print(summary, as_json=as_json)


def _identity(engine: Engine, layout: Layout) -> Identity:
    host = LocalHost()
    facts = None if engine.client is None else engine_facts(engine.client, host)
    return identity_of(host_facts(host, data_path=str(layout.home)), facts)


def _warn_of_load(host: Mapping[str, Any]) -> None:
    load, cpus = host.get("load_1min"), host.get("cpu_count")
    if load is not None and cpus and load > _BUSY * cpus:
        sys.stderr.write(
            f"tare: the load is {load:g} on {cpus} CPUs, so this calibrates a busy machine, and the figures stay; "
            "for a quiet one, stop what else runs and begin again\n"
        )


def _refuse(kinds: list[str], layout: Layout) -> None:
    """Nothing is started where a kind could not be run."""
    for kind in kinds:
        plan = expand(KINDS[kind].make(1))
        disk = estimate(plan, data_sets(WORKLOADS)).disk_bytes
        refuse_without_rights(plan, disk, layout=layout, deployments=_DEPLOYMENTS)


def _calibrate(  # noqa: PLR0913, PLR0917 - handed through
    archive: Archive,
    identity: Identity,
    kinds: list[str],
    engine: Engine,
    layout: Layout,
    limits: tuple[float | None, int | None],
    *,
    quiet: bool,
) -> Summary:
    interrupts = Interrupts()

    def machine(plan: Plan, references: References) -> Machine:
        made = local_machine(plan, engine, interrupts, layout, deployments=_DEPLOYMENTS)
        return replace(made, references=references)

    @contextmanager
    def watch(place: Place, plan: Plan, done: StudyState) -> Iterator[Observer]:
        if not quiet:
            sys.stderr.write(f"tare: study {place.number} of {KINDS[place.kind].title} ({place.path.name})\n")
        with progress(plan, done, quiet=quiet) as observer:
            yield observer

    session = Session(archive, identity, kinds, machine, watch, SystemClock())
    try:
        with interrupts.installed():
            return calibrate(session, *limits)
    except Interrupted as interrupted:
        sys.stderr.write(
            f"tare: interrupted by {interrupted}; what was made is removed, and every finished run is kept. The "
            "same command goes on from here.\n"
        )
        _print(archive.summarise(identity), as_json=False)
        raise typer.Exit(SIGNALLED + interrupted.number) from interrupted


def _print(summary: Summary, *, as_json: bool) -> None:
    if as_json:
        text = summary.model_dump_json(indent=2) + "\n"
    else:
        console = Console()
        text = render(summary, width=console.width)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
