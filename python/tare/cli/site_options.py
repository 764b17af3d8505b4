"""The options `--sites` and `--site`, which plan, run, doctor and clean share, and those of a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.errors import StudyError
from tare.sites.file import SiteSpec, load_sites

if TYPE_CHECKING:
    from tare.run.fleet.cluster import Scheduler

SitesOption = Annotated[
    Path | None, typer.Option("--sites", help="Sites file, to use hosts other than this machine.")
]
SiteOption = Annotated[str | None, typer.Option("--site", help="Site in that file (default: the first).")]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="Run the blocks on the workers of this Dask scheduler: tls://HOST:PORT."),
]
TlsCa = Annotated[Path | None, typer.Option("--tls-ca", help="Certificate authority of the cluster (PEM).")]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", help="This program's certificate (PEM).")]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="Key of that certificate (PEM).")]
WaitOption = Annotated[
    float, typer.Option("--wait", min=0.1, help="Minutes to wait for a site's worker, with --scheduler.")
]
WAIT_MIN = 10.0


def chosen_scheduler(
    address: str | None, tls: tuple[Path | None, Path | None, Path | None], wait_min: float, *, sites: bool
) -> Scheduler | None:
    """Scheduler that the options name; `None` for tare's own. `tls`: CA, certificate, key. Raises `StudyError`."""
    if address is None:
        if any(tls):
            raise StudyError(
                "--tls-ca, --tls-cert and --tls-key need --scheduler", hint="add --scheduler tls://HOST:PORT"
            )
        return None
    if not sites:
        raise StudyError("--scheduler needs --sites", hint="add --sites FILE, the same file as the workers'")
    from tare.run.fleet.cluster import Scheduler  # slow to import

    ca, cert, key = tls
    return Scheduler(address, ca, cert, key, 60 * wait_min)


def chosen_sites(sites: Path | None, site: str | None) -> tuple[SiteSpec, ...]:
    """Sites that the options name: all of the file, or one; none for this machine. Raises `StudyError`."""
    if sites is not None and site is None:
        return load_sites(sites).sites
    chosen = chosen_site(sites, site)
    return () if chosen is None else (chosen,)


def chosen_site(sites: Path | None, site: str | None) -> SiteSpec | None:
    """Site that the options name; `None` for this machine. Raises `StudyError`."""
    if sites is not None:
        return load_sites(sites).chosen(site)
    if site is not None:
        raise StudyError("--site needs --sites FILE", hint="add --sites FILE")
    return None
