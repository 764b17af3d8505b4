"""`tare run`: study → plan → run → store."""

from __future__ import annotations

from typing import Annotated

import typer

from tare.cli.site_options import (
    WAIT_MIN,
    SchedulerOption,
    SiteOption,
    SitesOption,
    TlsCa,
    TlsCert,
    TlsKey,
    WaitOption,
    chosen_scheduler,
    chosen_sites,
)
from tare.cli.study.format import Format
from tare.cli.study.planned import planned
from tare.cli.study.running import run_plan
from tare.cli.study.serve import page_beside
from tare.run.ending import ending_of
from tare.run.resume import remaining
from tare.store.outlines import state_of
from tare.store_place import StorePlace, parse_store_url

NO_GOOD_RESULT = 1
"""Exit code: a run failed for good, or the control arm differs from the baseline."""


def run(  # noqa: PLR0913, PLR0917 - one parameter an option
    study: Annotated[str, typer.Argument(help="A study that comes with tare, a directory, or a study file.")],
    scale: Annotated[str | None, typer.Option(help="Scale of the study (default: full).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed for the order of runs, instead of the study's.")] = None,
    blocks: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Maximum number of blocks, instead of the study's.")
    ] = None,
    store: Annotated[
        StorePlace | None,
        typer.Option(parser=parse_store_url, metavar="STORE", help="Where results go (default: NAME-SCALE-store)."),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="What to print at the end.")] = Format.TEXT,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print failures only, no progress.")] = False,  # noqa: FBT002 - an option, given by name
    profile: Annotated[  # noqa: FBT002 - an option, given by name
        bool, typer.Option("--profile", help="Sample stacks while runs measure, for `tare explain`.")
    ] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Serve a live page during the run.")] = False,  # noqa: FBT002 - an option, given by name
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: any free port.")] = 0,
    sites: SitesOption = None,
    site: SiteOption = None,
    scheduler: SchedulerOption = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    wait: WaitOption = WAIT_MIN,
) -> None:
    """Run a study, or resume an interrupted one; every finished run is kept."""
    where = chosen_sites(sites, site)
    cluster = chosen_scheduler(scheduler, (tls_ca, tls_cert, tls_key), wait, sites=bool(where))
    plan = planned(study, scale, seed, blocks, profile=profile)
    path = store or parse_store_url(f"{plan.study.name}-{plan.study.scale}-store")
    page = page_beside(path, wanted=serve, port=port)
    with run_plan(plan, path, quiet=quiet, beside=page, sites=where, cluster=cluster) as writer:
        done = state_of(writer)
        ending = ending_of(plan, done)
        if ending is not None:
            writer.end(ending)
        from tare.cli.study.result import show_result  # reports and statistics are slow to import

        valid = show_result(writer, output, ending)
        if remaining(plan, done) or not valid:
            raise typer.Exit(NO_GOOD_RESULT)
