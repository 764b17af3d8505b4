"""`tare knowledge`: list, show, add and check claims about what dockerizing costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tare.errors import StudyError
from tare.knowledge.advice_text import context_words, effect_words
from tare.knowledge.claim import ClaimFile, claim_called, load_claims
from tare.one_line import plain
from tare.plural import counted
from tare.sites.layout import default_layout
from tare.store_place import StorePlace, parse_store_url
from tare.study.catalogue import claims_folder
from tare.study.suggest import did_you_mean

_LONGEST_ID = 255
"""Longest id in characters: an id is the name of a file."""
_LONGEST = 400
_READABLE = 24
"""Characters that a column of words needs to be readable."""


def write_list(claims: Sequence[ClaimFile], console: Console) -> None:
    """Print claims: for people a table, or paragraphs in a narrow terminal; for programs, one line each."""
    rows = [_row(known) for known in claims]
    if not console.is_terminal:
        text = "".join("\t".join(row) + "\n" for row in rows)
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    elif max((len(name) for name, *_ in rows), default=0) + 2 * _READABLE <= console.width:
        console.print(_table(rows))
    else:
        for name, effect, context in rows:
            console.print(Text(name, style="bold"), soft_wrap=True)
            console.print(Padding(Text(f"{effect}\n{context}"), (0, 0, 0, 2)))


def _row(known: ClaimFile) -> tuple[str, str, str]:
    claim = known.claim
    return plain(known.id, _LONGEST_ID), plain(effect_words(claim), _LONGEST), plain(context_words(claim), _LONGEST)


def _table(rows: Sequence[tuple[str, str, str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("claim", header_style="dim", no_wrap=True)
    for column in ("effect", "of"):
        table.add_column(column, header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


app = typer.Typer(help="List, show and add claims about what dockerizing costs.", no_args_is_help=True)

Folder = Annotated[
    list[Path] | None,
    typer.Option("--claims", help="Another folder of claims; repeatable."),
]


def every_claim(more: list[Path] | None) -> tuple[ClaimFile, ...]:
    """Load the claims that come with tare, the user's own in TARE_HOME, and those of the given folders."""
    for folder in more or []:
        if not folder.is_dir():
            raise StudyError(f"there is no folder {folder}", hint="--claims takes a folder of claim files")
    return load_claims((claims_folder(), default_layout().knowledge, *(more or [])))


@app.command("list")
def list_claims(
    study: Annotated[str | None, typer.Option(help="Only claims of this study.")] = None,
    database: Annotated[str | None, typer.Option(help="Only claims of this database.")] = None,
    metric: Annotated[str | None, typer.Option(help="Only claims of this metric.")] = None,
    claims: Folder = None,
) -> None:
    """List the claims; in a pipe or file one per line: id, effect and subject, separated by tabs."""
    every = every_claim(claims)
    _refuse_unknown(every, study=study, database=database, metric=metric)
    chosen = [known for known in every if _wanted(known, study, database, metric)]
    write_list(chosen, Console(highlight=False))
    typer.echo(f"{counted(len(chosen), 'claim')}; `tare knowledge show CLAIM` shows the source of one.", err=True)


@app.command()
def show(
    claim: Annotated[str, typer.Argument(help="Id of the claim.")],
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,  # noqa: FBT002 - an option, given by name
    claims: Folder = None,
) -> None:
    """Show one claim with its source."""
    from tare.knowledge.own import as_json
    from tare.report.plain import plain_lines  # reports are slow to import

    known = claim_called(every_claim(claims), claim)
    text = as_json((known,)) if json else plain_lines(known.file.read_text(encoding="utf-8"))
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))


@app.command()
def export(
    style: Annotated[str, typer.Option("--format", help="json or csv.")] = "json",
    claims: Folder = None,
) -> None:
    """Write all claims as JSON or CSV to standard output."""
    from tare.knowledge.own import EXPORTS  # analyses are slow to import

    if style not in EXPORTS:
        raise typer.BadParameter(f"{style!r} is neither json nor csv", param_hint="--format")
    sys.stdout.buffer.write(EXPORTS[style](every_claim(claims)).encode())


@app.command()
def add(
    store: Annotated[
        StorePlace, typer.Argument(parser=parse_store_url, metavar="STORE", help="Store of `tare run`.")
    ],
    to: Annotated[Path | None, typer.Option(help="Folder to write to (default: knowledge/ in TARE_HOME).")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Add this metric only (default: all); repeatable.")
    ] = None,
) -> None:
    """Add the findings of your own store; emulated, imported and invalid findings are refused."""
    from tare.calibrate.archive import Archive  # what calibrations are made of is slow to import, as stores are
    from tare.knowledge.own import claims_of, write_claims
    from tare.store import open_store

    opened, layout = open_store(store), default_layout()
    calibrated = Archive(layout.calibration).spread if layout.calibration.is_dir() else None
    claims = claims_of(opened.plan, opened.records(), calibrated, metric or ())
    paths = write_claims(claims, to or default_layout().knowledge)
    for path in paths:
        typer.echo(str(path))
    use = "`tare advise`" if to is None else f"`tare advise --claims {to}`"
    typer.echo(f"{counted(len(paths), 'claim')} added; {use} uses them.", err=True)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Files of claims, published or own.")],
    claims: Folder = None,
) -> None:
    """Accept or refuse contributed claims; explain each fault and how to fix it.

    Exit code 1: at least one is refused.
    """
    from tare.knowledge.contribution import checked

    known = every_claim(claims)
    results = [checked(file, known) for file in files]
    for each in results:
        typer.echo(f"{each.file}: {'refused' if each.faults else 'accepted'}")
        for fault in each.faults:
            typer.echo(f"  {plain(fault.what, _LONGEST)}\n    {plain(fault.do, _LONGEST)}")
        for note in each.notes:
            typer.echo(f"  note: {plain(note, _LONGEST)}")
    if any(each.faults for each in results):
        raise typer.Exit(1)


@app.command()
def predicted(
    stores: Annotated[
        list[StorePlace],
        typer.Argument(
            parser=parse_store_url,
            metavar="STORE",
            help="Stores of studies that tare ran on machines with unit costs (`tare weigh`).",
        ),
    ],
    keep: Annotated[bool, typer.Option("--keep", help="Let `tare advise` use the error learned here.")] = False,  # noqa: FBT002 - an option, given by name
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,  # noqa: FBT002 - an option, given by name
    claims: Folder = None,
) -> None:
    """Predict each arm of your stores from its bare runs, and compare with what was measured.

    The model's error is learned from the other stores. Prints which arms fall behind their rate, how often the
    90 % interval holds, its median half-width, and the mean absolute error beside the published figure and the
    mean of all claims.
    """
    from tare.knowledge.predictions.past import error_of, judged, past_of
    from tare.knowledge.predictions.past_text import past_lines, past_tree

    layout = default_layout()
    pasts = [past_of(store, layout) for store in stores]
    found, error = judged(pasts, every_claim(claims)), error_of(pasts)
    rates = [each for past in pasts for each in past.rates]
    if as_json:
        text = json.dumps(past_tree(found, error, rates), indent=2, ensure_ascii=False) + "\n"
    else:
        text = "".join(f"{line}\n" for line in past_lines(found, error, rates))
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    if keep:
        from tare.knowledge.predictions.model_error import keep_error

        typer.echo(str(keep_error(layout, error)), err=True)


def _refuse_unknown(claims: tuple[ClaimFile, ...], **wanted: str | None) -> None:
    """Refuse an unknown name: if misspelt, it would look as if nothing was known of it."""
    contexts = [known.claim.context for known in claims]
    names: dict[str, set[str]] = {
        "study": {known.study for known in claims},
        "database": {context.database.name for context in contexts if context is not None},
        "metric": {name for known in claims if (name := known.claim.effect.metric) is not None},
    }
    for key, name in wanted.items():
        if name is not None and name not in names[key]:
            raise StudyError(
                f"no claim has the {key} {plain(name)!r}", hint=did_you_mean(name, names[key], kind=key)
            )


def _wanted(known: ClaimFile, study: str | None, database: str | None, metric: str | None) -> bool:
    context = known.claim.context
    return (
        (study is None or known.study == study)
        and (database is None or (context is not None and context.database.name == database))
        and (metric is None or known.claim.effect.metric == metric)
    )
