"""`tare site`: stores, claims, traps and unit costs as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tare.cli.advice.knowledge import Folder, every_claim
from tare.errors import StudyError
from tare.plural import counted
from tare.sites.layout import default_layout
from tare.store_place import parse_store_url


def site(
    places: Annotated[
        list[str],
        typer.Argument(metavar="[STORE]... DIR", help="Stores to show, then a new or empty directory to write."),
    ],
    claims: Folder = None,
) -> None:
    """Write stores, claims, traps and unit costs as a static site to explore: answers first.

    Any web server can serve it, and a browser can open it as a file; nothing is loaded from elsewhere.
    """
    from tare.knowledge.site.pages import write_site
    from tare.knowledge.site.stores import store_view
    from tare.store import open_store

    *stores, last = places
    folder = Path(last)
    if (folder / "store.sqlite").exists():
        raise StudyError(f"{folder} is a store", hint="name a new directory last: tare site STORE... DIR")
    views = []
    for number, place in enumerate(map(parse_store_url, stores), start=1):
        called = place.directory.absolute().name if place.is_directory else place.name
        views.append(store_view(open_store(place), number, called))
    paths = write_site(folder, every_claim(claims), default_layout(), views)
    typer.echo(str(folder / "index.html"))
    typer.echo(f"{counted(len(paths), 'file')} written; open index.html, or serve {folder}.", err=True)
