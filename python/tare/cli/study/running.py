"""Run a plan into its store, for `tare run`, `sweep` and `weigh`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from tare.cli.priority import default_priority
from tare.cli.study.progress import progress
from tare.errors import StoreError, StudyError, TareError
from tare.live.status_file import StatusWriter, with_status_file
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate
from tare.plan.model import Plan
from tare.plural import counted
from tare.record.run_record import RunRecord
from tare.run.between.reaching import ReachedSite, reached_site, refuse_site
from tare.run.between.same_hosts import refuse_other_hosts
from tare.run.ending import ending_of
from tare.run.execute import Destination, execute
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import local_engine, local_machine, refuse_without_rights
from tare.run.parity.references import References, until_refused
from tare.run.resume import StudyState, finished, remaining
from tare.sites.file import SiteSpec
from tare.sites.in_use import in_use
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind, Ledger
from tare.sites.local import own_process
from tare.sites.process import from_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import Writer, open_store, resume_store
from tare.store.outlines import state_of
from tare.store_place import Place, StorePlace, parse_store_url
from tare.workloads.registry import WORKLOADS

if TYPE_CHECKING:
    from tare.run.fleet.cluster import Scheduler
    from tare.run.fleet.workers import Workers


def unfinished(plan: Plan, records: tuple[RunRecord, ...]) -> str | None:
    """Why more blocks are to come; `None` if the study has ended. An import is always complete."""
    done = StudyState.from_records(records)
    if plan.study.imported is not None or ending_of(plan, done) is not None:
        return None
    made = counted(len(finished(plan, done)), "block")
    return f"the study has not ended: {made} of at most {plan.study.protocol.blocks} made; `tare run` resumes it"


_NAMED = 5
"""Number of leftovers that a message names."""


@contextmanager
def run_plan(  # noqa: PLR0913 - what a command may choose
    plan: Plan,
    where: Place,
    *,
    quiet: bool,
    beside: AbstractContextManager[object] | None = None,
    sites: Sequence[SiteSpec] = (),
    cluster: Scheduler | None = None,
) -> Iterator[Writer]:
    """Make all remaining runs, then yield the store, still held. A signal ends the command with its number.

    `beside`: context that is open while runs are made. `sites`: where to run, if not on this machine alone; several
    sites make blocks at the same time. `cluster`: its workers make the blocks instead of tare's own processes.
    """
    interrupts, place = Interrupts(), parse_store_url(where)
    with (
        _site_for(plan, place, sites, fleet=cluster is not None) as reached,  # refuses before a store is made
        resume_store(place, plan) as writer,
        interrupts.installed(),
    ):
        try:
            done = state_of(writer)
            if remaining(plan, done):
                with default_priority(quiet=quiet), beside or nullcontext():
                    if len(sites) > 1 or cluster is not None:
                        workers = partial(_workers_of, sites, cluster)
                        _run_on(plan, writer, done, interrupts, workers, [each.name for each in sites], quiet=quiet)
                    else:
                        _run(plan, writer, done, interrupts, reached, quiet=quiet)
        except Interrupted as interrupted:
            good = len(state_of(writer).good)
            sys.stderr.write(
                f"tare: interrupted by {interrupted} with {good} of at most {len(plan.runs)} runs done; "
                f"{cleaned_up(reached)}. The same command resumes (store: {place}).\n"
            )
            raise typer.Exit(interrupted.exit_code) from interrupted
        yield writer


def cleaned_up(reached: ReachedSite | None) -> str:
    """Say whether anything is left of what tare made, and how to remove it. Caches are meant to stay."""
    links = {} if reached is None else reached.connection.links
    ledger: Ledger = SqliteLedger(default_layout().ledger) if reached is None else reached.connection.ledger
    how = "tare clean" if reached is None else f"tare clean --sites FILE --site {reached.connection.spec.name}"
    own = {own_process(), *(from_ident(link.agent.ident) for link in links.values())}
    sockets = set() if reached is None else reached.connection.sockets  # removed with the connection
    try:
        dead = ledger.abandoned()
        left = [made for made in ledger.entries() if not made.keep and (made.owner in own or made in dead)]
        left = [made for made in left if made.kind is not Kind.PATH or made.ident not in sockets]
    except TareError as error:
        return f"what is left of it cannot be read: {error.what}; remove it with `{how}`"
    if not left:
        return "cleaned up"
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    return f"not removed: {', '.join(map(str, left[:_NAMED]))}{more}; remove with `{how}`"


@contextmanager
def _site_for(
    plan: Plan, place: StorePlace, sites: Sequence[SiteSpec], *, fleet: bool
) -> Iterator[ReachedSite | None]:
    """Connect the one site; yield `None` for this machine, and for several sites, which have their own processes.

    Raises if the machine or a site cannot run the plan.
    """
    if is_finished(place, plan):
        yield None
    elif len(sites) > 1 or fleet:
        from tare.run.fleet.coordinator import refuse_one_order

        refuse_one_order(plan)
        for site in sites:
            refuse_site(site)
            if site.swap:
                what = f"the site {site.name} has `swap`, which does not work with several sites at once"
                raise StudyError(what, hint=f"choose it by --site {site.name}, or leave `swap` out")
        yield None
    elif not sites:
        refuse_without_rights(plan, _disk_bytes(plan))
        yield None
    else:
        with reached_site(sites[0], place.directory) as reached:
            reached.refuse(plan, _disk_bytes(plan))
            yield reached


def _disk_bytes(plan: Plan) -> float | None:
    """Disk space that loaded data will take, in bytes; `None` if unknown."""
    return estimate(plan, data_sets(WORKLOADS)).disk_bytes


def is_finished(place: StorePlace, plan: Plan) -> bool:
    """Whether the store has all runs, so that showing it needs neither rights nor an engine."""
    try:
        return not remaining(plan, state_of(open_store(place)))
    except StoreError:
        return False


def _run(  # noqa: PLR0913 - all that runs are made of
    plan: Plan,
    writer: Writer,
    done: StudyState,
    interrupts: Interrupts,
    reached: ReachedSite | None,
    *,
    quiet: bool,
) -> None:
    status_writer = StatusWriter(writer.now, plan, writer.id, default_layout().work)
    with (
        in_use(default_layout().home),
        local_engine() as engine,
        progress(plan, done, quiet=quiet) as shown,
        with_status_file(status_writer, shown) as observer,
    ):
        here = local_machine(plan, engine, interrupts)
        machine = here if reached is None else reached.machine(plan, here, interrupts)
        made = tuple(writer.records())
        refuse_other_hosts(made, machine.site, str(writer.path))
        machine = replace(machine, references=References(made))
        destination = Destination(writer.id, done, writer.staging, writer.claims)
        runs = execute(plan, machine, destination, observer)
        for records in until_refused(runs, observer):
            writer.commit_all(records)


def _workers_of(sites: Sequence[SiteSpec], cluster: Scheduler | None) -> Workers:
    from tare.run.fleet.cluster import ClusterWorkers  # most commands do without
    from tare.run.fleet.workers import OwnWorkers

    if cluster is None:
        return OwnWorkers(sites)
    return ClusterWorkers([site.name for site in sites], cluster)


def _run_on(  # noqa: PLR0913, PLR0917 - all that runs are made of
    plan: Plan,
    writer: Writer,
    done: StudyState,
    interrupts: Interrupts,
    workers: Callable[[], Workers],
    sites: Sequence[str],
    *,
    quiet: bool,
) -> None:
    """Make the remaining runs on several sites at once."""
    from tare.run.fleet.coordinator import execute_on, refuse_one_order  # most commands do without
    from tare.run.fleet.dispatcher import Fleet

    status_writer = StatusWriter(writer.now, plan, writer.id, default_layout().work)
    writer.alone()
    made = writer.records()
    with (
        in_use(default_layout().home),
        progress(plan, done, quiet=quiet) as shown,
        with_status_file(status_writer, shown) as observer,
    ):
        refuse_one_order(plan, made)
        fleet = Fleet(sites, workers(), writer.path, interrupts)
        runs = execute_on(fleet, plan, Destination(writer.id, done, writer.staging), made, observer)
        for records in until_refused(runs, observer):
            writer.commit_all(records)
