"""Remove a rental: everything that the ledger or a tag lists, users before the resources that they use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tare.errors import TareError
from tare.sites.cloud import Provider, Resource, StillUsed
from tare.sites.cloud.rental import Rental, Rentals
from tare.sites.cloud.waits import Waits
from tare.sites.ledger import Kind

_TRIES = 3
"""Tries of a removal that is refused for another reason than that the resource is in use."""
_ORDER = list(Kind)
Key = tuple[Kind, str]


@dataclass
class Removed:
    """Results, one sentence each. Whatever failed is still in the ledger."""

    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def display_name(resource: Resource) -> str:
    """Name of a resource in reports."""
    return f"{resource.kind.value} {resource.name}"


@dataclass
class _Removal:
    """Rounds of requests. `asked`: state of a resource when its removal was requested."""

    provider: Provider
    seen: dict[Key, Resource] = field(default_factory=dict)
    asked: dict[Key, str] = field(default_factory=dict)
    tries: Counter[Key] = field(default_factory=Counter)
    why: dict[Key, str] = field(default_factory=dict)
    left: list[Resource] = field(default_factory=list)

    def round(self, there: Sequence[Resource]) -> None:
        """Request the removal of existing resources, unless it was requested and their state has not changed."""
        self.left = sorted(there, key=lambda each: (_ORDER.index(each.kind), each.name))
        self.seen |= {key_of(each): each for each in there}
        for each in self.left:
            if self.tries[key_of(each)] < _TRIES and self.asked.get(key_of(each)) != each.state:
                self._ask(each)

    @property
    def under_way(self) -> bool:
        """Whether a remaining resource may still disappear. One that waits for a resource that stays does not."""
        keys = [key_of(each) for each in self.left]
        given_up = [key for key in keys if self.tries[key] >= _TRIES]
        moving = [key for key in keys if key not in given_up and (key in self.asked or self.tries[key])]
        return bool(moving) or (bool(keys) and not given_up)

    def _ask(self, resource: Resource) -> None:
        key = key_of(resource)
        try:
            self.provider.remove(resource)
        except StillUsed as error:
            self.why[key] = str(error)
        except TareError as error:
            self.why[key] = str(error)
            self.tries[key] += 1
        else:
            self.asked[key] = resource.state

    def result(self) -> Removed:
        left = {key_of(each) for each in self.left}
        gone = sorted((key for key in self.seen if key not in left), key=lambda key: (_ORDER.index(key[0]), key[1]))
        return Removed([display_name(self.seen[key]) for key in gone], [self._failure(each) for each in self.left])

    def _failure(self, resource: Resource) -> str:
        why = self.why.get(key_of(resource), f"it is still {resource.state or 'there'}")
        return f"{display_name(resource)} ({resource.ident}) could not be removed: {why}"


def key_of(resource: Resource) -> Key:
    """Key of a resource that is the same in the ledger and at the provider."""
    return resource.kind, resource.name


def remove_rental(rental: Rental, provider: Provider, rentals: Rentals, waits: Waits) -> Removed:
    """Remove the whole rental; its folder is removed with the last resource.

    A resource that the ledger lists and the provider does not report counts as gone only some time after its
    request, because a provider may take a while to report what it has.
    """
    settled = rental.asked_at + waits.settle_s
    deadline = waits.now() + waits.remove_s
    removal = _Removal(provider)
    while True:
        there = [each for each in provider.resources(rental.plan.name) if each.tags.rental == rental.id]
        removal.round(there)
        for kind, name in removal.seen.keys() - {key_of(each) for each in there}:
            rentals.ledger.forget(kind, name, host=rental.id)
        unseen = {(entry.kind, entry.ident) for entry in rentals.entries(rental.id)} - removal.seen.keys()
        if not (removal.under_way or (unseen and waits.now() < settled)) or waits.now() >= deadline:
            break
        waits.pause(waits.poll_s)
    if waits.now() >= settled:
        for kind, name in unseen:
            rentals.ledger.forget(kind, name, host=rental.id)
    rentals.forget(rental)
    return removal.result()


def remove_untracked(resources: Sequence[Resource], plan: str, provider: Provider, waits: Waits) -> Removed:
    """Remove resources that no ledger of this tare lists, identified only by their tags."""
    wanted = {(each.kind, each.ident) for each in resources}
    deadline = waits.now() + waits.remove_s
    removal = _Removal(provider)
    while True:
        removal.round([each for each in provider.resources(plan) if (each.kind, each.ident) in wanted])
        if not removal.under_way or waits.now() >= deadline:
            return removal.result()
        waits.pause(waits.poll_s)
