"""`tare clean`: remove all that tare ever made on this machine, and nothing else. Stores are not touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from tare.deployments.sweep import Swept, orphans, sweep
from tare.errors import EnvironmentLacks
from tare.run.local import local_engine
from tare.sites.layout import default_layout
from tare.sites.ledger import Made
from tare.sites.local import LocalHost, own_process
from tare.sites.process import alive
from tare.sites.sqlite_ledger import SqliteLedger

NOT_ALL_REMOVED = 1


class Format(StrEnum):
    """What stdout gets."""

    TEXT = "text"
    JSON = "json"


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002 - an option, given by name
    keep_images: Annotated[bool, typer.Option("--keep-images", help="Keep images and loaded data.")] = False,  # noqa: FBT002 - an option, given by name
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,  # noqa: FBT002 - an option, given by name
    output: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TEXT,
) -> None:
    """Remove what tare made on this machine: containers, networks, control groups, processes, copies, caches.

    It goes by tare's own ledger and the engine's labels. Results (stores) stay.
    """
    host, ledger = LocalHost(), SqliteLedger(default_layout().ledger)
    with local_engine() as engine:
        entries = list(ledger.entries())
        _refuse_in_use(entries, host)
        if engine.client is not None:
            entries += [orphan for orphan in orphans(engine.client, host) if orphan not in entries]
        chosen = [entry for entry in entries if not (keep_images and entry.keep)]
        if dry_run or not chosen:
            _tell(Swept(removed=[_spoken(entry) for entry in chosen]), output, would=dry_run)
            return
        if not yes:
            _ask(chosen)
        swept = sweep(chosen, {host.name: host}, engine.client, ledger)
    _tell(swept, output, would=False)
    if swept.failed:
        raise typer.Exit(NOT_ALL_REMOVED)


def _refuse_in_use(entries: Sequence[Made], host: LocalHost) -> None:
    """What a running tare has made is in use; caches have no user once their maker is done."""
    users = {entry.owner for entry in entries if not entry.keep and entry.owner != own_process()}
    if running := sorted(owner.pid for owner in users if alive(host, owner)):
        raise EnvironmentLacks(
            f"a running tare (process {', '.join(map(str, running))}) is using what would be removed",
            hint="let it end, or stop it with Ctrl-C, then clean again",
        )


def _ask(chosen: Sequence[Made]) -> None:
    sys.stderr.write("".join(f"{_spoken(entry)}\n" for entry in chosen))
    typer.confirm(f"Remove these {len(chosen)}?", abort=True, err=True)


def _spoken(entry: Made) -> str:
    return f"{entry.kind.value} {entry.ident} on {entry.host}"


def _tell(swept: Swept, output: Format, *, would: bool) -> None:
    if output is Format.JSON:
        key = "would_remove" if would else "removed"
        sys.stdout.write(json.dumps({key: swept.removed, "failed": swept.failed}, indent=2) + "\n")
        return
    verb = "would remove" if would else "removed"
    if not swept.removed and not swept.failed:
        sys.stdout.write("nothing to remove\n")
    sys.stdout.write("".join(f"{verb} {what}\n" for what in swept.removed))
    sys.stderr.write("".join(f"tare: {what}\n" for what in swept.failed))
