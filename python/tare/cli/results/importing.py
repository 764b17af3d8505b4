"""`tare import`: put results that were measured elsewhere into a store of their own."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tare.errors import StudyError
from tare.imports import Import, ImportMapping, collect, load_mapping
from tare.imports.collect import ImportedRun
from tare.imports.remote import Fetched, fetched, is_url
from tare.one_line import harmless
from tare.plural import counted
from tare.store import Writer, resume_store
from tare.store.files import attempt_name
from tare.store.write import Staged, staged
from tare.store_place import StorePlace, parse_store_url

_LONG_REPORT = 8
"""Lines of a report that no two runs print alike."""


@dataclass(frozen=True)
class Asked:
    """A directory of results. `named`: as the command line names it."""

    named: str
    directory: Path


def _print_keys(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        from tare.imports.keys import keys_in_words  # only this option needs it

        typer.echo(keys_in_words())
        raise typer.Exit


def import_results(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="[MAPPING] DIR",
            help="Mapping file (which files belong to which runs), and directory of the results, or its URL.",
        ),
    ],
    store: Annotated[
        StorePlace | None,
        typer.Option(
            parser=parse_store_url,
            metavar="STORE",
            help="Directory of the store to write. Default: NAME-store, here.",
        ),
    ] = None,
    write_to: Annotated[
        Path | None,
        typer.Option(
            "--write", metavar="FILE", help="Where to write a guessed mapping. Default: NAME.import.yaml, here."
        ),
    ] = None,
    keys: Annotated[  # noqa: ARG001, FBT002 - its callback answers; an option, given by name
        bool,
        typer.Option(
            "--keys", callback=_print_keys, is_eager=True, help="Explain a mapping's keys, and name what is read."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Import by the guessed mapping without a question.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Import results measured elsewhere, so that `tare report` can analyse them.

    Without a mapping, tare looks at names and contents, writes a mapping of guesses, and asks before it goes on.
    Importing the same files again changes nothing; other files or another mapping need another store.
    """
    if len(paths) > 2:
        raise typer.BadParameter("one mapping and one directory", param_hint="[MAPPING] DIR")
    named = paths[-1]
    with fetched(named) if is_url(named) else nullcontext(Fetched(Path(named), ())) as results:
        for sentence in results.left_out:
            typer.echo(harmless(sentence), err=True)
        asked = Asked(named, results.directory)
        mapping = Path(paths[0]) if len(paths) > 1 else _guessed(asked, write_to, yes=yes)
        if mapping is None:
            return
        loaded = load_mapping(mapping)
        _import(loaded, results.directory, store or parse_store_url(f"{loaded.file.name}-store"))


def _guessed(asked: Asked, write_to: Path | None, *, yes: bool) -> Path | None:
    """Write a guessed mapping and ask whether it is right; `None` if nobody says that it is."""
    from tare.imports.guess import guess, survey  # only an import without a mapping needs these
    from tare.report.write import write as write_file

    guessed = guess(survey(asked.directory))
    target = write_to or Path(f"{guessed.name}.import.yaml")
    if target.is_file() and target.read_text(encoding="utf-8", errors="replace") != guessed.text:
        raise StudyError(
            f"{target} is there already, and another mapping than the guessed one",
            hint=f"import by it (`tare import {target} {asked.named}`), or remove it",
        )
    write_file(guessed.text, target)
    for sentence in guessed.found:
        typer.echo(harmless(sentence), err=True)
    typer.echo(f"wrote {target}: each guess has its reason there", err=True)
    for doubt in guessed.doubts:
        typer.echo(harmless(f"is this right? {doubt}"), err=True)
    by_hand = f"if it is right: `tare import {target} {asked.named}`"
    if yes and guessed.doubts:
        raise StudyError("nothing is imported: nobody has confirmed a metric and its unit", hint=by_hand)
    if yes or (sys.stdin.isatty() and typer.confirm("Import by it?", err=True)):
        return target
    typer.echo(f"nothing is imported yet; {by_hand}", err=True)
    return None


def _import(mapping: ImportMapping, directory: Path, store: StorePlace) -> None:
    imported = collect(mapping, directory)
    with resume_store(store, imported.plan) as writer:
        write(writer, imported)
    if pairs := copies(imported):
        one, other = pairs[0]
        more = f" (and {len(pairs) - 1} more)" if len(pairs) > 1 else ""
        both = f"two reports of {one}" if one == other else f"{one} and {other}"
        typer.echo(f"warning: {both} are identical{more}: two runs, or one run twice?", err=True)
    failed = [run.record for run in imported.runs if not run.record.outcome.ok]
    if failed:
        first = failed[0]
        name = first.imported and first.imported.file
        typer.echo(
            harmless(f"warning: {counted(len(failed), 'failed run')}, the first of {name}: {first.outcome.reason}"),
            err=True,
        )
    for why, times in imported.left_out.items():
        typer.echo(harmless(f"left out: {counted(times, 'run')} ({why})"), err=True)
    for sentence in imported.monitors:
        typer.echo(harmless(sentence), err=True)
    if imported.unpaired is not None:
        typer.echo(f"warning: {imported.unpaired}", err=True)
    summary = f"{counted(len(imported.runs), 'run')} from {counted(imported.files, 'file')}"
    typer.echo(f"{summary}: `tare report {store}` shows them.", err=True)


def copies(imported: Import) -> list[tuple[str, str]]:
    """Pairs of files with equal content: no two runs print the same, so that one would count twice.

    Files count, and long reports of them: two rows of a table, or reports of a line, may be equal by chance.
    """
    files: dict[str, list[str]] = {}
    long: list[tuple[str, str]] = []
    for run in imported.runs:
        if run.record.outcome.ok and (source := run.record.imported) is not None:
            files.setdefault(source.file, []).append(source.sha256)
            if run.raw.count(b"\n") >= _LONG_REPORT:
                long.append((source.sha256, source.file))
    whole = [(" ".join(digests), name) for name, digests in files.items()]
    first: dict[str, str] = {}
    of_files = [(first[each], name) for each, name in whole if first.setdefault(each, name) != name]
    seen: dict[str, int] = {}
    of_reports = [
        (long[seen[digest]][1], name) for n, (digest, name) in enumerate(long) if seen.setdefault(digest, n) != n
    ]
    return list(dict.fromkeys([*of_files, *of_reports]))


def write(writer: Writer, imported: Import) -> None:
    """Commit all runs that the store does not have yet, with the files they were read from."""
    there = {record.run_id for record in writer.records()}
    new = [run for run in imported.runs if run.record.run_id not in there]
    writer.commit_staged(_staged(run, writer.staging) for run in new)


def _staged(run: ImportedRun, staging: Path) -> Staged:
    place = staging / attempt_name(run.record.run_id, run.record.attempt)
    place.mkdir(parents=True)
    (place / run.record.raw[0]).write_bytes(run.raw)
    for name, content in run.tables.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
    return staged(run.record, staging, time.time(), run.series)
