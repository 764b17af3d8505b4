"""`tare weigh`: what a request costs on each network path of this machine."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.calibrate.summary import Identity, identity_of
from tare.cli.study.calibration_text import machine
from tare.cli.study.planned import planned
from tare.cli.study.running import is_finished, run_plan
from tare.errors import RunFailed, StudyError
from tare.knowledge.event_costs import EventCost, event_lines, measured_events
from tare.knowledge.kept_costs import costs_dir, keep, read_costs
from tare.knowledge.link_costs import link_costs
from tare.knowledge.machine_costs import machine_events
from tare.knowledge.unit_costs import LINKS, STUDY, Load, Quantity, UnitCost, UnitCosts, unit_costs
from tare.knowledge.unit_costs import Path as NetworkPath
from tare.plan.model import Plan
from tare.report.content import readable
from tare.report.interval_bar import LINES, Marks, bar_axis, interval_bar, marks_for
from tare.run.local import local_engine
from tare.sites.engine import engine_facts
from tare.sites.facts import host_facts
from tare.sites.layout import Layout, default_layout, make_directory, make_home
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store_place import parse_store_url
from tare.version import __version__

_MEANING = (
    "\N{MICRO SIGN}s per request; bare in full, others in addition to bare; "
    "\N{PLUS-MINUS SIGN} half of the 95 % interval"
)
_LEAST_BAR, _MOST_BAR = 24, 56
"""Characters of a bar: a narrower one shows too little, a wider one tears its row apart."""


def weigh(  # noqa: PLR0913, PLR0917 - options of a command
    full: Annotated[  # noqa: FBT002 - an option, given by name
        bool, typer.Option("--full", help="Measure longer: up to an hour, for narrower intervals.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Repeat earlier measurements.")] = False,  # noqa: FBT002 - an option, given by name
    show: Annotated[bool, typer.Option("--show", help="Print earlier results; run nothing.")] = False,  # noqa: FBT002 - an option, given by name
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002 - an option, given by name
    home: Annotated[Path | None, typer.Option(help="tare's directory, in place of $TARE_HOME.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print failures only, no progress.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Measure what a request costs on each network path of this machine, without a database.

    Takes ten minutes at most. `tare advise --profile` predicts from it what a path would cost a database. After
    Ctrl-C, the same command resumes. Paths that were measured before are skipped unless you pass `--again`.
    """
    layout = default_layout() if home is None else Layout(home.absolute())
    identity = _identity(layout)
    costs = (
        read_costs(layout, identity) if show else _measured(layout, identity, full=full, again=again, quiet=quiet)
    )
    if costs is None:
        hint = "`tare weigh` measures them"
        if identity.engine is None:
            hint = f"they are kept by kernel and engine, and no engine answers: start it; {hint}"
        raise StudyError("there are no unit costs for this machine, kernel and engine", hint=hint)
    marks = marks_for(sys.stdout.encoding)
    text = costs.model_dump_json(indent=2) + "\n" if as_json else render(costs, width=Console().width, marks=marks)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))


def _identity(layout: Layout) -> Identity:
    host = LocalHost()
    with local_engine() as engine:
        facts = None if engine.client is None else engine_facts(engine.client, host)
    return identity_of(host_facts(host, data_path=str(layout.home)), facts)


def _measured(layout: Layout, identity: Identity, *, full: bool, again: bool, quiet: bool) -> UnitCosts:
    """Run the study, or resume it, and keep its unit costs."""
    plan = planned(STUDY, "full" if full else "quick", None, None)
    make_home(layout.home)
    store = newest_store(costs_dir(layout, identity), plan)
    if is_finished(parse_store_url(store), plan):
        if again:
            store = _next(store)
        elif not quiet:
            typer.echo("paths were measured before; --again measures them anew", err=True)
    make_directory(store.parent)
    with run_plan(plan, store, quiet=quiet) as writer:
        study, records = readable(plan.study, writer.records())
        costs = UnitCosts(
            tare=__version__,
            identity=identity,
            measured_at=max((phase.began_at for run in records for phase in run.phases), default=0.0),
            digest=plan.digest,
            costs=unit_costs(study, records),
        )
    if not costs.costs:
        raise StudyError("every run of the unit costs failed", hint=f"`tare report {store}` says why")
    keep(layout, costs)  # before the events, which may fail
    links, packets, lacks = link_costs(LocalHost())
    costs = costs.model_copy(update={"costs": (*costs.costs, *links), "events": packets})
    keep(layout, costs)
    events, more = _events(layout, identity)
    of_guests, further = machine_events(LocalHost(), SqliteLedger(layout.ledger), layout)
    if not quiet:
        for why in (*lacks, *more, *further):
            typer.echo(f"not measured: {why}", err=True)
    costs = costs.model_copy(update={"events": (*events, *packets, *of_guests)})
    keep(layout, costs)
    return costs


def newest_store(folder: Path, plan: Plan) -> Path:
    """Return the newest store of this plan in a folder; the first, if there is none yet."""
    first = folder / f"{plan.study.scale}-{plan.digest[:12]}"
    later = [
        path for path in folder.glob(f"{first.name}-*") if path.name.removeprefix(f"{first.name}-").isdecimal()
    ]
    return max(later, key=_number, default=first)


def _number(store: Path) -> int:
    """Return the number of a store: the first has none, the second has `-2`."""
    *_, end = store.name.split("-")[2:] or ["1"]
    return int(end)


def _next(store: Path) -> Path:
    """Return the place of the store after this one."""
    return store.with_name("-".join([*store.name.split("-")[:2], str(_number(store) + 1)]))


def _events(layout: Layout, identity: Identity) -> tuple[tuple[EventCost, ...], tuple[str, ...]]:
    """Measure what single kernel events cost, in some seconds; and say what could not be measured."""
    folder = costs_dir(layout, identity) / "events"
    make_directory(folder)
    try:
        with local_engine() as engine:
            return measured_events(LocalHost(), engine.client, folder)
    except RunFailed as error:
        return (), (str(error),)
    finally:
        folder.rmdir()


def render(costs: UnitCosts, *, width: int = 100, marks: Marks = LINES) -> str:
    """Render the costs as a table: one row for each path, with a bar beside it, or below where that is too wide."""
    out = io.StringIO()
    console = Console(file=out, width=max(width, 80), highlight=False)
    console.print(Text(machine(costs.identity), style="bold"))
    console.print(Text(_MEANING))
    console.print()
    table = _table(costs)
    room = console.width - console.measure(table, options=console.options.update_width(1000)).maximum - 2
    if room >= _LEAST_BAR:
        bars = _bars(costs, min(room, _MOST_BAR), marks)
        console.print(_table(costs, bars))
    else:
        console.print(table)
        console.print()
        longest = max(len(_path_name(path)) for path in _paths(costs))
        bars = _bars(costs, min(console.width - longest - 2, _MOST_BAR), marks)
        console.print(Text("CPU as bars", style="dim"))
        for path, bar in bars.items():
            console.print(Text(f"{_path_name(path):<{longest}}  {bar}"), soft_wrap=True)
    console.print()
    ends = f"{marks.ends[0]}{marks.line}{marks.point}{marks.line}{marks.ends[1]}"
    console.print(Text(f"bars: from zero to the CPU time; {ends} its 95 % interval"), soft_wrap=True)
    if costs.events:
        console.print()
        for line in event_lines(costs.events):
            console.print(Text(line), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(costs: UnitCosts, bars: Mapping[NetworkPath, str] | None = None) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns: Sequence[tuple[str, Load, Quantity, bool]] = (
        ("CPU", "busy", "machine-cpu", False),
        ("of server", "busy", "sut-cpu", False),
        ("of client", "busy", "client-cpu", False),
        ("time alone", "alone", "time", False),
        ("CPU a KiB", "large", "machine-cpu", True),
    )
    table.add_column("path", no_wrap=True)
    for title, *_ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    if bars is not None:
        table.add_column("CPU as bars", no_wrap=True)
    for path in _paths(costs):
        cells = (costs.of(path, load, quantity, per_kib=per_kib) for _, load, quantity, per_kib in columns)
        table.add_row(_path_name(path), *map(_cell, cells), *([] if bars is None else [Text(bars[path])]))
    return table


def _paths(costs: UnitCosts) -> Sequence[NetworkPath]:
    return tuple(dict.fromkeys(each.path for each in costs.costs))


def _bars(costs: UnitCosts, width: int, marks: Marks) -> Mapping[NetworkPath, str]:
    """Bar of the CPU time of each path; empty where that is unknown."""
    known = {path: costs.of(path, "busy", "machine-cpu") for path in _paths(costs)}
    drawn = [cost for cost in known.values() if cost is not None]
    bounds = [end for cost in drawn for end in (cost.low, cost.high) if end is not None]
    axis = bar_axis([cost.us for cost in drawn], bounds, width)
    return {
        path: "" if cost is None else interval_bar(cost.us, cost.low, cost.high, axis, marks)
        for path, cost in known.items()
    }


def _path_name(path: NetworkPath) -> str:
    server, client, network = path
    if network in LINKS:
        return f"{network} link"
    if server == client == "bare":
        return "bare"
    return f"{network}, both inside" if client != "bare" else network


def _cell(cost: UnitCost | None) -> str:
    if cost is None:
        return "\N{EM DASH}"
    digits = 2 if cost.per_kib else 1
    reach = "" if cost.high is None else f" \N{PLUS-MINUS SIGN}{cost.high - cost.us:.{digits}f}"
    return f"{cost.us:.{digits}f}{reach}"
