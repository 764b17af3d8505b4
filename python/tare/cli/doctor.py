"""`tare doctor`: what this machine can and cannot do, and what to do about it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.doctor import Verdict
from tare.doctor.examination import Examination, examine
from tare.errors import EnvironmentLacks
from tare.sites.engine import connect
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

_STYLES = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.CANNOT: "bold red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print lines and facts as JSON.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Examine this machine: what it can do, what it cannot, what to do about it (exit code 3: no study can run)."""
    layout = default_layout()
    ledger = SqliteLedger(layout.ledger) if layout.ledger.exists() else None
    try:
        engine = connect(timeout_s=10)
    except EnvironmentLacks as error:
        found = examine(LocalHost(), error, layout, ledger)
    else:
        try:
            found = examine(LocalHost(), engine, layout, ledger)
        finally:
            engine.close()
    if as_json:
        sys.stdout.write(json.dumps(tree(found), indent=2) + "\n")
    else:
        show(found, Console(highlight=False))
    if not found.able:
        raise typer.Exit(EnvironmentLacks.exit_code)


def tree(found: Examination) -> dict[str, object]:
    """`able`, `lines` (name, verdict, found, advice), and the facts as docs/reference/facts.md has them."""
    return {
        "able": found.able,
        "lines": [asdict(line) for line in found.lines],
        "host": dict(found.host),
        "engine": None if found.engine is None else dict(found.engine),
    }


def show(found: Examination, console: Console) -> None:
    """A line each, with the advice under what was found."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for column in ("verdict", "name", "found"):
        table.add_column(column, no_wrap=column != "found")
    for line in found.lines:
        text = Text(line.found)
        if line.advice is not None:
            text.append(f"\n→ {line.advice}", style="italic")
        table.add_row(Text(line.verdict.value, style=_STYLES[line.verdict]), line.name, text)
    console.print(table)
    console.print()
    able = "can run here." if found.able else "cannot run here before what is marked `cannot` has been mended."
    console.print(Text(f"A study with bare and container arms {able}", style="bold"))
