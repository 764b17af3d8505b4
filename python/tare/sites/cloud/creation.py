"""Make the machines of a plan: all of them, or none that is not reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tare.errors import EnvironmentLacks, TareError
from tare.plural import counted
from tare.sites.cloud import Machine, Offer, Provider, Resource, Unanswered, Wanted
from tare.sites.cloud.blueprint import HostPlace, Keys, blueprint, places, resource_name
from tare.sites.cloud.keys import SshKey, new_key
from tare.sites.cloud.plan import MachinePlan
from tare.sites.cloud.ready import Ready
from tare.sites.cloud.removal import Removed, remove_rental
from tare.sites.cloud.rental import Rental, Rentals, reached_by, sites_text
from tare.sites.cloud.waits import Waits
from tare.sites.file import SshSpec
from tare.sites.ledger import Kind

_ELSEWHERE = "ask the provider why, or try another zone or machine type"


@dataclass(frozen=True)
class Order:
    """Machines to make, for which sites file, and for whom. `tell`: reports a line of progress."""

    plan: MachinePlan
    offer: Offer
    sites_file: Path
    made_by: str
    tell: Callable[[str], None]


@dataclass(frozen=True)
class Created:
    """A rental whose machines run. `sites`: text of its sites.yaml."""

    rental: Rental
    hosts: tuple[tuple[HostPlace, SshSpec], ...]
    sites: str


class Undone(EnvironmentLacks):
    """Machines could not be made. `removed`: result of removing those that were made."""

    def __init__(self, what: str, removed: Removed, *, hint: str | None) -> None:
        super().__init__(what, hint=hint)
        self.removed = removed


def create(order: Order, provider: Provider, rentals: Rentals, waits: Waits, ready: Ready | None) -> Created:
    """Make all machines, wait until they run, and until `ready` accepts them (`None`: do not check).

    Raises `Undone` if one cannot be made: all others are then removed again. Any other exception, including an
    interrupt, is raised after the same removal.
    """
    rental = rentals.begin(order.plan, order.offer, sites_file=order.sites_file, made_by=order.made_by)
    host_keys = {place.host: new_key() for place in places(order.plan)}
    try:
        _ask_for_all(rental, order, host_keys, provider, rentals, waits)
        hosts = _with_known_keys(rental, host_keys, _running(rental, provider, waits))
        deadline = waits.now() + waits.ready_s
        for place, spec in hosts:
            if ready is not None:
                order.tell(f"waiting for {place.host} ({spec.ssh})")
                ready(spec, waits, deadline)
    except BaseException as error:
        removed = _removed_again(rental, provider, rentals, replace(waits, pause=waits.pause_protected))
        outcome = _outcome(rental, removed)
        if isinstance(error, TareError):
            raise Undone(f"{error.what}; {outcome}", removed, hint=error.hint) from error
        order.tell(outcome)
        raise
    return Created(rental, hosts, sites_text(rental, hosts))


def _ask_for_all(  # noqa: PLR0913, PLR0917 - the state of a creation
    rental: Rental,
    order: Order,
    host_keys: Mapping[str, SshKey],
    provider: Provider,
    rentals: Rentals,
    waits: Waits,
) -> None:
    made, keys = 0, Keys(rental.login, host_keys)
    for wanted in blueprint(order.plan, order.offer, rental.id, rental.about.end_of_life, keys):
        waits.pause(0)
        _ask(wanted, rental, provider, rentals)
        if isinstance(wanted, Machine):
            made += 1
            order.tell(f"{wanted.name} ({made} of {order.plan.machines})")


def _with_known_keys(
    rental: Rental, host_keys: Mapping[str, SshKey], machines: Mapping[str, Resource]
) -> tuple[tuple[HostPlace, SshSpec], ...]:
    """The hosts, after making their host keys known to ssh(1)."""
    hosts = rental.hosts(machines)
    addresses = {
        place.host: str(reached_by(rental.plan, machines[resource_name(rental.id, place.host)]))
        for place, _ in hosts
    }
    rental.trust(host_keys, addresses)
    return hosts


def _ask(wanted: Wanted, rental: Rental, provider: Provider, rentals: Rentals) -> None:
    last: list[tuple[Kind, str]] = []

    def note(*kinds: Kind, name: str) -> None:
        last[:] = [(kind, name) for kind in kinds]
        for kind in kinds:
            rentals.ledger.note(kind, name, host=rental.id)
        rental.asking()

    try:
        provider.ask(wanted, rental.tags, note)
    except Unanswered:
        raise
    except EnvironmentLacks:  # refused, so nothing was made
        for kind, name in last:
            rentals.ledger.forget(kind, name, host=rental.id)
        raise


def _running(rental: Rental, provider: Provider, waits: Waits) -> Mapping[str, Resource]:
    """All machines by name, once each runs and has its addresses."""
    wanted = {resource_name(rental.id, place.host) for place in places(rental.plan)}
    began = waits.now()
    while True:
        machines = {
            each.name: each
            for each in provider.resources(rental.plan.name)
            if each.tags.rental == rental.id and each.kind is Kind.MACHINE
        }
        for each in machines.values():
            if each.fault:
                raise EnvironmentLacks(f"{each.name} cannot start: {each.fault}", hint=_ELSEWHERE)
        waiting = sorted(wanted - {name for name, each in machines.items() if _usable(rental, each)})
        if not waiting:
            return machines
        lost = sorted(wanted - machines.keys())
        if waits.now() >= began + waits.start_s or (lost and waits.now() >= began + waits.settle_s):
            first = (lost or waiting)[0]
            raise EnvironmentLacks(
                f"{counted(len(waiting), 'machine')} did not start within {waits.now() - began:.0f} s, the first "
                f"{first} ({'it is gone' if lost else _lacking(rental, machines[first])})",
                hint=_ELSEWHERE,
            )
        waits.pause(waits.poll_s)


def _usable(rental: Rental, machine: Resource) -> bool:
    return machine.running and machine.private_address is not None and reached_by(rental.plan, machine) is not None


def _lacking(rental: Rental, machine: Resource) -> str:
    if machine.running and reached_by(rental.plan, machine) is None:
        return f"it has no {rental.plan.address} address"
    return f"it is {machine.state}"


def _removed_again(rental: Rental, provider: Provider, rentals: Rentals, waits: Waits) -> Removed:
    try:
        return remove_rental(rental, provider, rentals, waits)
    except TareError as error:
        there = [f"{entry.kind.value} {entry.ident}: {error}" for entry in rentals.entries(rental.id)]
        return Removed(failed=there or [str(error)])


def _outcome(rental: Rental, removed: Removed) -> str:
    if not removed.failed:
        return "everything created so far was removed" if removed.removed else "nothing was made"
    return (
        f"not everything could be removed: {'; '.join(removed.failed)}; try again: tare sites destroy {rental.id}"
    )
