"""`tare calibrate`: studies whose outcome is known beforehand, to test how well this machine measures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tare.calibrate.archive import Archive, Place
from tare.calibrate.identify import identity_between, identity_here
from tare.calibrate.kinds import KINDS
from tare.calibrate.session import Session, calibrate
from tare.calibrate.studies import INJECTING
from tare.calibrate.summary import Identity, Summary
from tare.cli.priority import default_priority
from tare.cli.site_options import SiteOption, SitesOption, chosen_site
from tare.cli.study.calibration_text import render
from tare.cli.study.progress import progress
from tare.deployments.registry import DEPLOYMENTS
from tare.errors import StudyError
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.host_facts import HostFacts
from tare.run.between.reaching import reached_site
from tare.run.clock import SystemClock
from tare.run.events import Observer
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import local_engine, local_machine, refuse_without_rights
from tare.run.machine import Machine
from tare.run.parity.references import References
from tare.run.resume import StudyState
from tare.sites import Host
from tare.sites.facts import host_facts
from tare.sites.file import SiteSpec
from tare.sites.in_use import in_use
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.workloads.registry import WORKLOADS

_BUSY = 0.25
"""Load average of the last minute per CPU above which a machine counts as busy."""
_DEPLOYMENTS = {**DEPLOYMENTS, **INJECTING}


class KindName(StrEnum):
    """Kinds of calibration studies, as the command line names them."""

    WORK = "work"
    QUOTA = "quota"
    DELAY = "delay"
    IO = "io"
    AA = "aa"


_KINDS = f"Only studies of these kinds: {', '.join(KindName)}; repeatable."


def calibrate_machine(  # noqa: PLR0913, PLR0917 - one parameter an option
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Start no run after this time (default: until stopped).")
    ] = None,
    studies: Annotated[int | None, typer.Option(min=1, help="Stop after this number of studies.")] = None,
    only: Annotated[list[KindName] | None, typer.Option(metavar="KIND", help=_KINDS)] = None,
    home: Annotated[Path | None, typer.Option(help="tare's directory, in place of $TARE_HOME.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print earlier results; run nothing.")] = False,  # noqa: FBT002 - an option, given by name
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002 - an option, given by name
    quiet: Annotated[bool, typer.Option("--quiet", help="Print failures only, no progress.")] = False,  # noqa: FBT002 - an option, given by name
    sites: SitesOption = None,
    site: SiteOption = None,
) -> None:
    """Test this machine, or two hosts (--sites), with identical servers and known effects.

    Results add to those of earlier calibrations. Ctrl-C stops it; the same command resumes.
    """
    layout = default_layout() if home is None else Layout(home.absolute())
    archive = Archive(layout.calibration)
    spec = chosen_site(sites, site)
    kinds = _kinds([kind.value for kind in only or KindName], given=bool(only), between=spec is not None)
    with _here(layout) if spec is None else _between(spec, layout, resumes=not show) as where:
        summary = archive.summarise(where.identity)
        if not show:
            for host in where.hosts:
                _warn_of_load(host_facts(host))
            for kind in kinds:  # start nothing if any study cannot run
                where.refuse(expand(KINDS[kind].make(1)))
            with default_priority(quiet=quiet):
                summary = _calibrate(archive, where, kinds, (minutes, studies), quiet=quiet)
    _print(summary, as_json=as_json)


def _kinds(names: list[str], *, given: bool, between: bool) -> list[str]:
    """Kinds to take in turn; between two hosts, only kinds with a client. Raises `StudyError` if `given` others."""
    alone = [name for name in names if not KINDS[name].has_client]
    if between and given and alone:
        raise StudyError(
            f"the kind {alone[0]} has no client, so it cannot test two hosts",
            hint=f"leave it out, or run `tare calibrate --only {alone[0]}` on the host itself",
        )
    return [name for name in names if not (between and name in alone)]


@dataclass(frozen=True)
class _Target:
    """Machine or pair of hosts to calibrate. `refuse` raises if a plan cannot run there."""

    identity: Identity
    hosts: tuple[Host, ...]
    refuse: Callable[[Plan], None]
    machine: Callable[[Plan, Interrupts], Machine]


@contextmanager
def _here(layout: Layout) -> Iterator[_Target]:
    """Yield the machine that tare runs on."""

    def refuse(plan: Plan) -> None:
        disk = estimate(plan, data_sets(WORKLOADS)).disk_bytes
        refuse_without_rights(plan, disk, layout=layout, deployments=_DEPLOYMENTS)

    with in_use(layout.home), local_engine() as engine:
        yield _Target(
            identity_here(engine.client, layout),
            (LocalHost(),),
            refuse,
            lambda plan, interrupts: local_machine(plan, engine, interrupts, layout, _DEPLOYMENTS),
        )


@contextmanager
def _between(spec: SiteSpec, layout: Layout, *, resumes: bool) -> Iterator[_Target]:
    """Yield the two hosts of a site. `resumes`: find the agents of an interrupted session again, by its name."""
    store = layout.calibration / spec.name if resumes else None
    with (
        reached_site(spec, store, layout=layout, deployments=_DEPLOYMENTS) as reached,
        local_engine() as engine,
    ):

        def machine(plan: Plan, interrupts: Interrupts) -> Machine:
            return reached.machine(plan, local_machine(plan, engine, interrupts, layout, _DEPLOYMENTS), interrupts)

        yield _Target(identity_between(reached), reached.connection.site.hosts, reached.refuse, machine)


def _warn_of_load(host: HostFacts) -> None:
    load, cpus = host.load_1min, host.cpu_count
    if load is not None and cpus and load > _BUSY * cpus:
        where = "" if host.name in (None, "local") else f" of {host.name}"
        sys.stderr.write(
            f"tare: the load{where} is {load:g} on {cpus} CPUs, so this calibrates a busy machine; its "
            "figures are kept. To calibrate an idle machine, stop other work and start again\n"
        )


def _calibrate(
    archive: Archive,
    where: _Target,
    kinds: list[str],
    limits: tuple[float | None, int | None],
    *,
    quiet: bool,
) -> Summary:
    interrupts = Interrupts()

    def machine(plan: Plan, references: References) -> Machine:
        return replace(where.machine(plan, interrupts), references=references)

    @contextmanager
    def watch(place: Place, plan: Plan, done: StudyState) -> Iterator[Observer]:
        if not quiet:
            sys.stderr.write(f"tare: study {place.number} of {KINDS[place.kind].title} ({place.path.name})\n")
        with progress(plan, done, quiet=quiet) as observer:
            yield observer

    session = Session(archive, where.identity, kinds, machine, watch, SystemClock())
    try:
        with interrupts.installed():
            return calibrate(session, *limits)
    except Interrupted as interrupted:
        sys.stderr.write(
            f"tare: interrupted by {interrupted}; cleaned up; every finished run is kept. The same command "
            "resumes.\n"
        )
        _print(archive.summarise(where.identity), as_json=False)
        raise typer.Exit(interrupted.exit_code) from interrupted


def _print(summary: Summary, *, as_json: bool) -> None:
    if as_json:
        text = summary.model_dump_json(indent=2) + "\n"
    else:
        console = Console()
        text = render(summary, width=console.width)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
