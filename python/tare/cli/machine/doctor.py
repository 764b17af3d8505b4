"""`tare doctor`: check what this machine can and cannot do, with advice."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.cli.site_options import SiteOption, SitesOption, chosen_site
from tare.doctor import Line, Verdict
from tare.doctor.between import wire_lines
from tare.doctor.examination import Examination, examine
from tare.errors import EnvironmentLacks
from tare.record.run_record import to_tree
from tare.run.between.reaching import engine_of
from tare.run.local import Engine, host_of_user
from tare.sites.connected import connected
from tare.sites.engine import connect
from tare.sites.file import SiteSpec, SshSpec
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.ssh.ledger import AgentLedger
from tare.traps.met import host_traps

_STYLES = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.MISSING: "dim", Verdict.CANNOT: "bold red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print lines and facts as JSON.")] = False,  # noqa: FBT002 - an option, given by name
    sites: SitesOption = None,
    site: SiteOption = None,
) -> None:
    """Check what this machine can and cannot do, and how to fix it (exit code 3: no study can run)."""
    if (where := chosen_site(sites, site)) is not None:
        _doctor_site(where, as_json=as_json)
        return
    layout = default_layout()
    ledger = SqliteLedger(layout.ledger) if layout.ledger.exists() else None
    try:
        client = connect(timeout_s=10)
    except EnvironmentLacks as error:
        examination = examine(LocalHost(), error, layout, ledger)
    else:
        with closing(client), ExitStack() as ending:
            engine = Engine(client, None, ending=ending)
            host = host_of_user(engine, layout, ledger or SqliteLedger(layout.ledger))
            examination = examine(host, client, layout, ledger)
    if as_json:
        sys.stdout.write(json.dumps(tree(examination), indent=2) + "\n")
    else:
        show(examination, Console(highlight=False))
    if not examination.able:
        raise typer.Exit(EnvironmentLacks.exit_code)


def _doctor_site(spec: SiteSpec, *, as_json: bool) -> None:
    """Examine every host of the site, then the connection between SUT and client."""
    with connected(spec) as site, ExitStack() as stack:
        examinations = {}
        for host in site.site.hosts:
            link = site.links.get(host.name)
            layout = site.homes[host.name]
            own = AgentLedger(link) if link is not None else SqliteLedger(layout.ledger)
            known = site.host_spec(host)
            far = known if isinstance(known, SshSpec) else None
            engine, address = engine_of(site, host, stack), site.site.addresses.get(host.name)
            examinations[host.name] = examine(host, engine, layout, own, far, address=address)
        between = wire_lines(site) if site.site.sut is not site.site.client else ()
    able = all(each.able for each in examinations.values()) and all(
        line.verdict is not Verdict.CANNOT for line in between
    )
    if as_json:
        hosts = {name: tree(each) for name, each in examinations.items()}
        lines = [asdict(line) for line in between]
        sys.stdout.write(json.dumps({"able": able, "hosts": hosts, "between": lines}, indent=2) + "\n")
    else:
        console = Console(highlight=False)
        for name, each in examinations.items():
            console.print(Text(name, style="bold"))
            show(each, console)
            console.print()
        if between:
            console.print(Text("between them", style="bold"))
            console.print(_table(between))
    if not able:
        raise typer.Exit(EnvironmentLacks.exit_code)


def tree(examination: Examination) -> dict[str, object]:
    """JSON tree: `able`, `lines` with the fields of `Line`, and the facts of docs/reference/facts.md."""
    return {
        "able": examination.able,
        "lines": [asdict(line) for line in examination.lines],
        "traps": [dict(each.tree) for each in host_traps(examination.host)],
        "host": to_tree(examination.host),
        "engine": None if examination.engine is None else to_tree(examination.engine),
    }


def show(examination: Examination, console: Console) -> None:
    """Print one line for each check, with the advice below its result: requirements, then conditions."""
    for needed, title in ((True, "What arms need"), (False, "What may distort results")):
        console.print(Text(title, style="bold"))
        console.print(_table([line for line in examination.lines if (line.needed_by is not None) is needed]))
        console.print()
    if met := host_traps(examination.host):
        console.print(Text("Traps that this machine sets for any database", style="bold"))
        for each in met:
            console.print(Text(each.sentence.partition(": ")[2]))
        console.print()
    arms = "bare and container arms" if examination.bare else "container arms only"
    able = f"A study with {arms} can run here."
    fixable = "No study can run here until everything marked `cannot` is fixed."
    console.print(Text(able if examination.able else fixable, style="bold"))


def _table(lines: Sequence[Line]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for column in ("verdict", "name", "found"):
        table.add_column(column, no_wrap=column != "found")
    for line in lines:
        text = Text(line.found)
        if line.advice is not None:
            text.append(f"\n→ {line.advice}", style="italic")
        table.add_row(Text(line.verdict.value, style=_STYLES[line.verdict]), line.name, text)
    return table
