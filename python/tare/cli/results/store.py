"""`tare store`: verify a store, copy it, or save the undamaged runs of a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tare.errors import StoreError
from tare.plural import counted
from tare.report.plain import plain
from tare.store import open_store
from tare.store import verify as problems_of
from tare.store.copying import copy as copied
from tare.store.files import StoreLayout
from tare.store.repair import repair as repaired
from tare.store_place import StorePlace, parse_store_url

DAMAGED = 1
"""Exit code: something is not as it was committed."""
_LONGEST = 400

app = typer.Typer(help="Verify a store against its digests, copy it, or repair it.", no_args_is_help=True)


@app.command()
def verify(
    store: Annotated[
        StorePlace, typer.Argument(parser=parse_store_url, metavar="STORE", help="A store; it is only read.")
    ],
) -> None:
    """Check every record and raw file against the digest of its commit (exit code 1: something differs)."""
    if store.is_directory and not StoreLayout(store.directory).database.is_file():
        raise StoreError(f"there is no store at {store}", hint="`tare run STUDY --store DIR` makes one")
    try:
        opened = open_store(store)
        problems = problems_of(opened)
        attempts = len(opened.records())
    except StoreError as error:
        if not store.is_directory:  # server or network failed: the content of the store is unknown
            raise
        problems, attempts = (str(error),), 0
    if not problems:
        typer.echo(f"{store} is whole: {counted(attempts, 'attempt')}, each unchanged since it was committed")
        return
    for problem in problems:
        typer.echo(plain(problem, _LONGEST))
    shown = store if store.is_directory else f"'{store}'"
    save = f"`tare store repair {shown} --to NEW` saves the undamaged runs"
    typer.echo(f"tare: {counted(len(problems), 'problem')}; {save}", err=True)
    raise typer.Exit(DAMAGED)


@app.command()
def copy(
    store: Annotated[
        StorePlace, typer.Argument(parser=parse_store_url, metavar="STORE", help="A store; it is only read.")
    ],
    to: Annotated[
        StorePlace, typer.Argument(parser=parse_store_url, metavar="TO", help="Directory or URL of the copy.")
    ],
) -> None:
    """Copy a store to a directory or a URL, with every digest checked; the same command resumes."""
    done = copied(store, to)
    again = f", {done.there} of them earlier" if done.there else ""
    typer.echo(f"{to}: {counted(done.attempts, 'attempt')} copied{again}")


@app.command()
def repair(
    store: Annotated[
        StorePlace,
        typer.Argument(parser=parse_store_url, metavar="STORE", help="The damaged store; it is only read."),
    ],
    to: Annotated[Path, typer.Option(help="Directory of the new store.")],
) -> None:
    """Copy the study and every undamaged attempt into a new store (exit code 1: some were left out)."""
    done = repaired(store, to)
    for name, why in done.lost.items():
        typer.echo(f"left out {plain(name)}: {plain(why, _LONGEST)}")
    typer.echo(f"{to}: {counted(len(done.kept), 'attempt')} saved, {len(done.lost)} left out")
    if done.lost:
        typer.echo("tare: `tare run` with the same study and the new store repeats the missing runs", err=True)
        raise typer.Exit(DAMAGED)
