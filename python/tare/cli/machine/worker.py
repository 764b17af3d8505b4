"""`tare worker`: make blocks on one site for a running Dask scheduler, until that ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tare.cli.priority import default_priority
from tare.cli.site_options import TlsCert, TlsKey
from tare.errors import StudyError
from tare.run.between.reaching import refuse_site
from tare.run.fleet.cluster import Scheduler
from tare.run.fleet.site_process import Orders, by_ssh, serve
from tare.sites.file import load_sites

TlsCa = Annotated[
    Path | None, typer.Option("--tls-ca", "--tls-ca-file", help="Certificate authority of the cluster (PEM).")
]
_OF_A_QUEUE = "Accepted because dask-jobqueue gives it to every worker; no effect."


def worker(  # noqa: PLR0913, PLR0917 - a parameter an option
    sites: Annotated[Path, typer.Option("--sites", help="Sites file.")],
    site: Annotated[str, typer.Option("--site", help="Site in that file to work on.")],
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of the Dask scheduler: tls://HOST:PORT.")
    ] = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    address: Annotated[
        str | None,
        typer.Argument(metavar="[ADDRESS]", help="Same as --scheduler, in the form that dask-jobqueue uses."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name in the cluster (default: the site's).")] = None,
    nthreads: Annotated[str | None, typer.Option("--nthreads", hidden=True, help=_OF_A_QUEUE)] = None,  # noqa: ARG001 - see its help
    memory_limit: Annotated[str | None, typer.Option("--memory-limit", hidden=True, help=_OF_A_QUEUE)] = None,  # noqa: ARG001 - see its help
    death_timeout: Annotated[str | None, typer.Option("--death-timeout", hidden=True, help=_OF_A_QUEUE)] = None,  # noqa: ARG001 - see its help
    local_directory: Annotated[str | None, typer.Option("--local-directory", hidden=True, help=_OF_A_QUEUE)] = None,  # noqa: ARG001 - see its help
) -> None:
    """Run blocks on one site for `tare run --scheduler`, as a Dask worker.

    Start it on a machine that reaches the site's hosts by SSH and is not one of them. It exits when its scheduler
    does.
    """
    if (scheduler is None) == (address is None):
        raise StudyError("tare worker needs one address of a scheduler", hint="add --scheduler tls://HOST:PORT")
    spec = load_sites(sites).chosen(site)
    refuse_site(spec)
    where = Scheduler(scheduler or address or "", tls_ca, tls_cert, tls_key)
    with default_priority():
        serve(Orders(where.address, spec.model_dump(mode="json"), where.security, name), by_ssh)
    sys.stderr.write(f"tare: the worker of {spec.name} ended: its scheduler ended or told it to stop\n")
