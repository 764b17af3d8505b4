"""`tare import`: put results that were measured elsewhere into a store of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tare.imports import Import, collect, load_mapping
from tare.one_line import harmless
from tare.plural import counted
from tare.store import Writer, resume_store
from tare.store.files import attempt_name
from tare.store_place import StorePlace, place_of


def import_results(
    mapping: Annotated[Path, typer.Argument(help="Mapping file: which files belong to which runs.")],
    directory: Annotated[Path, typer.Argument(help="Directory of the results.")],
    store: Annotated[
        StorePlace, typer.Option(parser=place_of, metavar="STORE", help="Directory of the store to write.")
    ],
) -> None:
    """Import results measured elsewhere, so that `tare report` can analyse them.

    Importing the same files again changes nothing; other files or another mapping need another store.
    """
    imported = collect(load_mapping(mapping), directory)
    with resume_store(store, imported.plan) as writer:
        write(writer, imported)
    if pairs := copies(imported):
        one, other = pairs[0]
        more = f" (and {len(pairs) - 1} more)" if len(pairs) > 1 else ""
        typer.echo(f"warning: {one} and {other} are identical{more}: two runs, or one run twice?", err=True)
    failed = [run.record for run in imported.runs if not run.record.outcome.ok]
    if failed:
        first = failed[0]
        name = (first.imported or {}).get("file")
        typer.echo(
            harmless(f"warning: {counted(len(failed), 'failed run')}, the first of {name}: {first.outcome.reason}"),
            err=True,
        )
    for why, times in imported.left_out.items():
        typer.echo(harmless(f"left out: {counted(times, 'run')} ({why})"), err=True)
    if imported.unpaired is not None:
        typer.echo(f"warning: {imported.unpaired}", err=True)
    summary = f"{counted(len(imported.runs), 'run')} from {counted(imported.files, 'file')}"
    typer.echo(f"{summary}: `tare report {store}` shows them.", err=True)


def copies(imported: Import) -> list[tuple[str, str]]:
    """Pairs of files of different runs with equal content: no two runs print the same, so one would count twice."""
    first: dict[str, str] = {}
    good = [run.record.imported for run in imported.runs if run.record.outcome.ok]
    digests = [(str(each["sha256"]), str(each["file"])) for each in good if each]
    return [(first[digest], name) for digest, name in digests if first.setdefault(digest, name) != name]


def write(writer: Writer, imported: Import) -> None:
    """Commit all runs that the store does not have yet, with the files they were read from."""
    there = {record.run_id for record in writer.records()}
    new = [run for run in imported.runs if run.record.run_id not in there]
    for run in new:
        place = writer.staging / attempt_name(run.record.run_id, run.record.attempt)
        place.mkdir(parents=True)
        (place / run.record.raw[0]).write_bytes(run.raw)
    writer.commit_all([run.record for run in new])
