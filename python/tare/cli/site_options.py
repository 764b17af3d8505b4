"""The options `--sites` and `--site`, which plan, run, doctor and clean share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tare.errors import StudyError
from tare.sites.file import SiteSpec, load_sites

SitesOption = Annotated[Path | None, typer.Option("--sites", help="File of sites: hosts other than this machine.")]
SiteOption = Annotated[str | None, typer.Option("--site", help="Site in that file (default: the first).")]


def chosen_sites(sites: Path | None, site: str | None) -> tuple[SiteSpec, ...]:
    """All sites of the file, or the one that is named; none for this machine. Raises `StudyError`."""
    if sites is not None and site is None:
        return load_sites(sites).sites
    chosen = chosen_site(sites, site)
    return () if chosen is None else (chosen,)


def chosen_site(sites: Path | None, site: str | None) -> SiteSpec | None:
    """The site that is meant, `None` for this machine. Raises `StudyError`."""
    if sites is not None:
        return load_sites(sites).chosen(site)
    if site is not None:
        raise StudyError("--site names a site of a file, and no file was given", hint="add --sites FILE")
    return None
