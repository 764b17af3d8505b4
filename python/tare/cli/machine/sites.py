"""`tare sites`: make machines of a cloud from a plan, list and destroy them."""

from __future__ import annotations

import getpass
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.errors import EnvironmentLacks, StudyError, TareError
from tare.plural import counted
from tare.report.write import refuse_place, write
from tare.run.interrupts import Interrupted, Interrupts
from tare.sites.cloud import Offer, Resource
from tare.sites.cloud.creation import Created, Order, create
from tare.sites.cloud.plan import MachinePlan, load_plan
from tare.sites.cloud.ready import Ready, ready
from tare.sites.cloud.registry import provider_of
from tare.sites.cloud.removal import Removed, display_name, remove_rental, remove_untracked
from tare.sites.cloud.rental import Rental, Rentals, heading
from tare.sites.cloud.waits import Waits
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind

NOT_ALL_REMOVED = 1
_READY: Ready = ready

app = typer.Typer(help="Make, list and destroy machines from a cloud.")

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; do nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def _default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_all()


@app.command("create")
def make(
    plan: Annotated[Path, typer.Argument(help="Machine plan (YAML).")],
    output: Annotated[Path, typer.Option("--output", help="Sites file to write.")] = Path("sites.yaml"),
    yes: Yes = False,  # noqa: FBT002 - an option, given by name
    dry_run: DryRun = False,  # noqa: FBT002 - an option, given by name
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for logins.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Make the machines of a plan and write their sites.yaml; if one is unavailable, remove the others.

    Prints the cost first. The machines power off at the end of their lifetime, whatever happens to this machine.
    """
    wanted = load_plan(plan)
    rentals = Rentals(default_layout())
    _refuse_other_sites(output, rentals)
    provider = provider_of(wanted)
    offer = provider.offer(wanted)
    sys.stderr.write(_priced(wanted, offer))
    if dry_run:
        return
    if not yes:
        typer.confirm("Make them?", abort=True, err=True)
    order = Order(wanted, offer, output, _maker(), _progress)
    with _ending_cleanly() as waits:
        created = create(order, provider, rentals, waits, None if no_wait else _READY)
        _write_sites(created, output)
    sys.stdout.write(f"wrote {output}: {counted(wanted.sites, 'site')}, machines of {created.rental.id}\n")


@app.command("list")
def list_all(as_json: AsJson = False) -> None:  # noqa: FBT002 - an option, given by name
    """List machines from clouds, with what they cost and when their life ends."""
    views = [_view(rental) for rental in Rentals(default_layout()).all()]
    if as_json:
        sys.stdout.write(json.dumps({"rentals": [view.tree() for view in views]}, indent=2) + "\n")
        return
    if not views:
        sys.stdout.write("no machines from a cloud\n")
        return
    Console(highlight=False).print(_table(views))
    for view in views:
        sys.stderr.write("".join(f"tare: {warning}\n" for warning in view.warnings()))


@app.command()
def destroy(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME|PLAN", help="Rental, or plan file (default: all).")
    ] = [],  # noqa: B006 - typer copies it
    yes: Yes = False,  # noqa: FBT002 - an option, given by name
    dry_run: DryRun = False,  # noqa: FBT002 - an option, given by name
    as_json: AsJson = False,  # noqa: FBT002 - an option, given by name
    others: Annotated[bool, typer.Option("--others", help="With PLAN: also other people's machines.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Destroy machines from a cloud with all that belongs to them (exit code 1: something is left).

    With a plan file, destroys all your machines that carry its name at the provider, recorded here or not. Lists
    machines that others made from a plan of that name, and destroys them only with --others.
    """
    rentals = Rentals(default_layout())
    chosen = [rentals.named(name) for name in names if not _is_file(name)] if names else list(rentals.all())
    plans = [load_plan(Path(name)) for name in names if _is_file(name)]
    destroy_all(chosen, plans, DestroyOptions(yes=yes, dry_run=dry_run, as_json=as_json, others=others))


@dataclass(frozen=True)
class DestroyOptions:
    """How to destroy. `others`: also what others made by a plan of the same name."""

    yes: bool
    dry_run: bool
    as_json: bool
    others: bool = False


def destroy_all(chosen: Sequence[Rental], plans: Sequence[MachinePlan], options: DestroyOptions) -> None:
    """Destroy rentals, and everything that bears the name of a plan, after asking."""
    rentals = Rentals(default_layout())
    known = {rental.id: rental for rental in rentals.all()}
    wanted = {rental.id: rental for rental in chosen}
    untracked: list[tuple[MachinePlan, list[Resource]]] = []
    for plan in plans:
        there = provider_of(plan).resources(plan.name)
        wanted |= {name: rental for name, rental in known.items() if rental.plan.name == plan.name}
        unknown = [each for each in there if each.tags.rental not in known]
        own = {each.tags.rental for each in unknown if options.others or each.tags.made_by == _maker()}
        if mine := [each for each in unknown if each.tags.rental in own]:
            untracked.append((plan, mine))
        _print_kept(plan, [each for each in unknown if each not in mine])
    _refuse_in_use(list(wanted.values()))
    if not wanted and not untracked:
        _print_result(Removed(), options, would=options.dry_run)
        return
    if options.dry_run or not options.yes:
        listed = [line for rental in wanted.values() for line in _contents(rental)]
        listed += [
            f"{display_name(each)}, made by {each.tags.made_by}" for _, others in untracked for each in others
        ]
        if options.dry_run:
            _print_result(Removed(removed=listed), options, would=True)
            return
        sys.stderr.write("".join(f"{line}\n" for line in listed))
        typer.confirm("Destroy these?", abort=True, err=True)
    total = Removed()
    with _ending_cleanly() as waits:
        for rental in wanted.values():
            _add(total, remove_rental(rental, provider_of(rental.plan), rentals, waits))
        for plan, others in untracked:
            _add(total, remove_untracked(others, plan.name, provider_of(plan), waits))
    _print_result(total, options, would=False)
    if total.failed:
        raise typer.Exit(NOT_ALL_REMOVED)


def _maker() -> str:
    """User and machine, since several people may use one account and the same plan."""
    return f"{getpass.getuser()}@{platform.node()}"[:60]


def _print_kept(plan: MachinePlan, kept: Sequence[Resource]) -> None:
    # OpenStack's server groups have no tags: the other resources of the rental name the maker.
    makers = {each.tags.rental: each.tags.made_by for each in sorted(kept, key=lambda each: each.tags.made_by)}
    for rental, maker in sorted(makers.items()):
        sys.stderr.write(
            f"tare: {rental}, made by {maker or 'somebody'} by a plan named {plan.name}, was not "
            "destroyed; tare sites destroy PLAN --others destroys it too\n"
        )


def _add(total: Removed, more: Removed) -> None:
    total.removed += more.removed
    total.failed += more.failed


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) or "/" in name


def _contents(rental: Rental) -> list[str]:
    there = [each for each in provider_of(rental.plan).resources(rental.plan.name) if each.tags.rental == rental.id]
    return [f"{display_name(each)} ({each.state})" if each.state else display_name(each) for each in there] or [
        f"record of {rental.id}"
    ]


def _refuse_in_use(rentals: Sequence[Rental]) -> None:
    for rental in rentals:
        if (user := rental.user) is not None:
            raise EnvironmentLacks(
                f"a running tare (process {user.pid}) is making the machines of {rental.id}",
                hint="wait until it ends, or stop it with Ctrl-C: it then removes the machines itself",
            )


def _write_sites(created: Created, output: Path) -> None:
    """Write the sites file. If that fails, as on a full disk, keep the machines and print the text on stderr."""
    try:
        write(created.sites, output)
    except TareError as error:
        sys.stderr.write(created.sites)
        hint = f"save the text above, or tare sites destroy {created.rental.id}"
        raise EnvironmentLacks(f"{error.what}; the machines of {created.rental.id} run", hint=hint) from error
    created.rental.finish()


def _refuse_other_sites(output: Path, rentals: Rentals) -> None:
    """Refuse to replace any file but a sites file whose machines are gone."""
    refuse_place(output)
    if not output.exists():
        return
    try:
        first = output.read_text(encoding="utf-8").partition("\n")[0] if output.is_file() else ""
    except (OSError, UnicodeDecodeError):
        first = ""
    mine = first.startswith("# Machines of ")
    if mine and not any(first.startswith(heading(rental)) for rental in rentals.all()):
        return
    what = "names machines that exist" if mine else "is there already"
    raise StudyError(f"{output} {what}", hint="name another file with --output")


def _priced(plan: MachinePlan, offer: Offer) -> str:
    types = plan.types
    named = types.sut if types.sut == types.client else f"{types.sut} (servers) and {types.client} (clients)"
    spot = ", on the spot market" if plan.spot else ""
    disk = "" if plan.disk is None else f", {plan.disk.size_gb} GB {plan.disk.kind or 'disk'} each"
    where = plan.region if offer.zone is None else offer.zone
    number = f"{counted(plan.machines, 'machine')} ({counted(plan.sites, 'site')} of {plan.nodes + 1})"
    lines = [
        f"{number}: {named} in {where}{spot}{disk}",
        f"image {offer.image_name} ({offer.image})",
        f"end of life {plan.lifetime_h:g} h after they are made",
    ]
    price = offer.cost.usd_hour
    if price is None:
        lines.append(f"the cost is unknown: {offer.cost.why}")
    else:
        lines.append(
            f"cost {price:.2f} USD an hour, {price * plan.lifetime_h:.2f} USD until the end of life, without disks "
            "and traffic"
        )
    return "".join(f"tare: {line}\n" for line in lines)


@dataclass(frozen=True)
class _View:
    """A rental and its resources. If the provider could not be asked, `resources` is `None`, and `why` says why."""

    rental: Rental
    resources: tuple[Resource, ...] | None
    why: str = ""

    @property
    def machines(self) -> int | None:
        return None if self.resources is None else sum(each.kind is Kind.MACHINE for each in self.resources)

    @property
    def running(self) -> int | None:
        return None if self.resources is None else sum(each.running for each in self.resources)

    @property
    def left_h(self) -> float:
        """Hours until the end of life; negative past it."""
        return (self.rental.about.end_of_life - datetime.now(UTC)).total_seconds() / 3600

    def warnings(self) -> Iterator[str]:
        rental = self.rental
        if self.resources is None:
            yield f"{rental.id}: {self.why}"
        if self.left_h <= 0 and (self.resources is None or self.resources):
            still = "may still exist" if self.running is None else f"{self.running} still running"
            yield f"{rental.id} is past its end of life ({still}): tare sites destroy {rental.id}"
        elif rental.user is None and self.running is not None:
            what = f"{self.running} of {counted(rental.plan.machines, 'machine')} running"
            if not rental.whole:
                yield f"{rental.id} was interrupted while tare created it ({what}): tare sites destroy {rental.id}"
            elif self.running < rental.plan.machines:
                yield f"{rental.id} has lost machines ({what})"

    def tree(self) -> dict[str, Any]:
        rental, about = self.rental, self.rental.about
        there = None if self.resources is None else [_shown(each) for each in self.resources]
        return {
            "id": rental.id,
            "study": rental.plan.study,
            "provider": rental.plan.provider,
            "region": rental.plan.region,
            "zone": about.zone,
            "machines": rental.plan.machines,
            "running": self.running,
            "usd_hour": about.usd_hour,
            "made_at": about.made_at.isoformat(),
            "end_of_life": about.end_of_life.isoformat(),
            "past_end_of_life": self.left_h <= 0,
            "sites_file": about.sites_file,
            "resources": there,
            "warnings": list(self.warnings()),
        }


def _shown(resource: Resource) -> dict[str, str]:
    return {"kind": resource.kind.value, "name": resource.name, "id": resource.ident, "state": resource.state}


def _view(rental: Rental) -> _View:
    try:
        there = provider_of(rental.plan).resources(rental.plan.name)
    except TareError as error:
        return _View(rental, None, str(error))
    return _View(rental, tuple(each for each in there if each.tags.rental == rental.id))


def _table(views: Sequence[_View]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("rental", "study", "where", "running", "USD/h", "end of life"):
        table.add_column(name, no_wrap=name != "where", justify="right" if name in ("running", "USD/h") else "left")
    for view in views:
        plan, about = view.rental.plan, view.rental.about
        running = "?" if view.running is None else str(view.running)
        left = f"in {view.left_h:.1f} h" if view.left_h > 0 else f"past by {-view.left_h:.1f} h"
        table.add_row(
            Text(view.rental.id),
            Text(plan.study),
            Text(f"{plan.provider} {about.zone or plan.region}"),
            f"{running} of {plan.machines}",
            "unknown" if about.usd_hour is None else f"{about.usd_hour:.2f}",
            f"{about.end_of_life.astimezone():%Y-%m-%d %H:%M} ({left})",
        )
    return table


def _print_result(removed: Removed, options: DestroyOptions, *, would: bool) -> None:
    if options.as_json:
        key = "would_remove" if would else "removed"
        sys.stdout.write(json.dumps({key: removed.removed, "failed": removed.failed}, indent=2) + "\n")
        return
    verb = "would remove" if would else "removed"
    if not removed.removed and not removed.failed:
        sys.stdout.write("nothing to remove\n")
    sys.stdout.write("".join(f"{verb} {what}\n" for what in removed.removed))
    sys.stderr.write("".join(f"tare: {what}\n" for what in removed.failed))


def _progress(line: str) -> None:
    sys.stderr.write(f"tare: {line}\n")


@contextmanager
def _ending_cleanly() -> Iterator[Waits]:
    """Let a signal interrupt tare while it waits, never between a request and its answer."""
    interrupts = Interrupts()
    with interrupts.installed():
        try:
            yield Waits(pause=partial(_pause, interrupts))
        except Interrupted as interrupted:
            sys.stderr.write(f"tare: interrupted by {interrupted}\n")
            raise typer.Exit(interrupted.exit_code) from interrupted


def _pause(interrupts: Interrupts, seconds: float) -> None:
    with interrupts.allowed():
        time.sleep(seconds)
