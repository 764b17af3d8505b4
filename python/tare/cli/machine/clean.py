"""`tare clean`: remove all that tare ever made on this machine, and nothing else. Stores are not touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from tare.cli.machine.forgetting import forget as forget_namespace
from tare.cli.machine.sites import DestroyOptions, destroy_all
from tare.cli.site_options import SiteOption, SitesOption, chosen_site
from tare.deployments.sweep import Swept, sweep
from tare.errors import EnvironmentLacks, StudyError
from tare.one_line import harmless
from tare.run.between.reaching import engine_of
from tare.run.local import all_orphans, host_of_user, local_engine
from tare.sites import Host, Process
from tare.sites.cloud.plan import plan_in
from tare.sites.connected import connected
from tare.sites.file import SiteSpec
from tare.sites.in_use import exclusive_use
from tare.sites.layout import default_layout
from tare.sites.ledger import Made
from tare.sites.local import LocalHost, own_process
from tare.sites.process import alive, from_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.unfinished import ALONE_S, BESIDE_OTHERS_S, unfinished

NOT_ALL_REMOVED = 1
_HERE = LocalHost()


class Format(StrEnum):
    """Output format."""

    TEXT = "text"
    JSON = "json"


def clean(  # noqa: PLR0913, PLR0917 - a parameter an option
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002 - an option, given by name
    keep_images: Annotated[bool, typer.Option("--keep-images", help="Keep images and loaded data.")] = False,  # noqa: FBT002 - an option, given by name
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed; remove nothing.")] = False,  # noqa: FBT002 - an option, given by name
    output: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TEXT,
    sites: SitesOption = None,
    site: SiteOption = None,
    forget: Annotated[
        str | None,
        typer.Option("--forget", metavar="NAME@UID", help="Forget a namespace of a cluster that is gone."),
    ] = None,
) -> None:
    """Remove what tare made on this machine: containers, networks, cgroups, processes, copies, caches.

    It uses tare's ledger and the engine's labels. Results (stores) stay. If --sites names a machine plan, this
    destroys all machines of that plan, including those of a killed tare. --forget removes a namespace from the
    ledger after its cluster is gone; it refuses if a context of the kubeconfig still reaches that cluster.
    """
    if forget is not None:
        if sites is not None or site is not None or keep_images:
            raise StudyError("--forget goes with --yes, --dry-run and --format only")
        ledger = SqliteLedger(default_layout().ledger)
        forget_namespace(forget, ledger, yes=yes, dry_run=dry_run, as_json=output is Format.JSON)
        return
    options = _Options(yes, keep_images, dry_run, output)
    if sites is not None and site is None and (plan := plan_in(sites)) is not None:
        destroy_all([], [plan], DestroyOptions(yes=yes, dry_run=dry_run, as_json=output is Format.JSON))
        return
    if (where := chosen_site(sites, site)) is not None:
        _clean_site(where, options)
        return
    layout = default_layout()
    ledger, home = SqliteLedger(layout.ledger), layout.home
    with local_engine() as engine, nullcontext() if dry_run else exclusive_use(home):
        host = host_of_user(engine, layout, ledger)
        entries = list(ledger.entries())
        _refuse_in_use(entries, {host.name: host}, frozenset({own_process()}))
        entries += [orphan for orphan in all_orphans(host, engine) if orphan not in entries]
        entries += unfinished(host, layout, older_than_s=ALONE_S)
        _carry_out(
            options,
            entries,
            lambda chosen: sweep(chosen, {host.name: host}, engine.client, ledger, engine.others),
        )


@dataclass(frozen=True)
class _Options:
    yes: bool
    keep_images: bool
    dry_run: bool
    output: Format


def _clean_site(spec: SiteSpec, options: _Options) -> None:
    """Clean every host of a site by its ledger; each host's engine removes what it made."""
    with connected(spec) as connection, ExitStack() as stack:
        hosts = {host.name: host for host in connection.site.hosts}
        agents = {from_ident(link.agent.ident) for link in connection.links.values()}
        entries = [entry for entry in connection.ledger.entries() if entry.host in hosts]
        _refuse_in_use(entries, hosts, frozenset({own_process(), *agents}))
        for name, host in hosts.items():
            entries += unfinished(host, connection.homes[name], older_than_s=BESIDE_OTHERS_S)

        def swept(chosen: Sequence[Made]) -> Swept:
            total = Swept()
            for name, host in hosts.items():
                engine = engine_of(connection, host, stack)
                client = None if isinstance(engine, EnvironmentLacks) else engine
                done = sweep(
                    [entry for entry in chosen if entry.host == name], {name: host}, client, connection.ledger
                )
                total.removed += done.removed
                total.failed += done.failed
            return total

        _carry_out(options, entries, swept)


def _carry_out(options: _Options, entries: Sequence[Made], remove: Callable[[Sequence[Made]], Swept]) -> None:
    chosen = [entry for entry in entries if not (options.keep_images and entry.keep)]
    if options.dry_run or not chosen:
        _print_result(Swept(removed=[entry.listed() for entry in chosen]), options.output, would=options.dry_run)
        return
    if not options.yes:
        _ask(chosen)
    swept = remove(chosen)
    _print_result(swept, options.output, would=False)
    if swept.failed:
        raise typer.Exit(NOT_ALL_REMOVED)


def _refuse_in_use(entries: Sequence[Made], hosts: Mapping[str, Host], own: frozenset[Process]) -> None:
    """Refuse while a running tare uses what would be removed. Caches (`keep`) have no user once they are made."""
    users = {(entry.host, entry.owner) for entry in entries if not entry.keep and entry.owner not in own}
    if running := sorted((owner.pid, host) for host, owner in users if alive(hosts.get(host, _HERE), owner)):
        pids = ", ".join(str(pid) if host == _HERE.name else f"{pid} on {host}" for pid, host in running)
        raise EnvironmentLacks(
            f"a running tare (process {pids}) is using what would be removed",
            hint="wait until it ends, or stop it with Ctrl-C, then clean again",
        )


def _ask(chosen: Sequence[Made]) -> None:
    sys.stderr.write(harmless("".join(f"{entry.listed()}\n" for entry in chosen)))
    typer.confirm(f"Remove these {len(chosen)}?", abort=True, err=True)


def _print_result(swept: Swept, output: Format, *, would: bool) -> None:
    if output is Format.JSON:
        key = "would_remove" if would else "removed"
        sys.stdout.write(json.dumps({key: swept.removed, "failed": swept.failed}, indent=2) + "\n")
        return
    verb = "would remove" if would else "removed"
    if not swept.removed and not swept.failed:
        sys.stdout.write("nothing to remove\n")
    sys.stdout.write(harmless("".join(f"{verb} {what}\n" for what in swept.removed)))
    sys.stderr.write(harmless("".join(f"tare: {what}\n" for what in swept.failed)))
