"""`tare worker`: make blocks on one site for a Dask scheduler that is there, until it goes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tare.cli.site_options import TlsCa, TlsCert, TlsKey
from tare.run.between.reaching import refuse_site
from tare.run.fleet.cluster import Scheduler
from tare.run.fleet.site_process import Orders, by_ssh, serve
from tare.sites.file import load_sites


def worker(  # noqa: PLR0913, PLR0917 - a parameter an option
    sites: Annotated[Path, typer.Option("--sites", help="File of sites.")],
    site: Annotated[str, typer.Option("--site", help="The site of that file to work on.")],
    scheduler: Annotated[str, typer.Option("--scheduler", help="Address of the Dask scheduler: tls://HOST:PORT.")],
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Run blocks on one site for `tare run --scheduler`, as a Dask worker.

    Start it on a machine that reaches the site's hosts by SSH and is not one of them. It ends with its scheduler.
    """
    spec = load_sites(sites).chosen(site)
    refuse_site(spec)
    where = Scheduler(scheduler, tls_ca, tls_cert, tls_key)
    serve(Orders(where.address, spec.model_dump(mode="json"), where.security), by_ssh)
    sys.stderr.write(f"tare: the worker of {spec.name} ended: its scheduler ended, or asked it to\n")
