"""Machines from a cloud: requests to a provider, and resources that it reports.

A *rental* is the result of one `tare sites create`. tare chooses the name of each resource, notes it in the ledger
before the request, and tags the resource with it, so that the resource can be identified whatever happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from tare.errors import EnvironmentLacks
from tare.sites.cloud.plan import DiskSpec, MachinePlan
from tare.sites.ledger import Kind


class Unanswered(EnvironmentLacks):
    """A request without an answer: the provider may or may not have done what was asked."""


class StillUsed(EnvironmentLacks):
    """A resource cannot be removed yet, because another one uses it."""


@dataclass(frozen=True)
class Tags:
    """Tags of every resource of a rental. `made_by`: user and machine that ran tare."""

    rental: str
    plan: str
    study: str
    end_of_life: datetime
    made_by: str

    def texts(self) -> dict[str, str]:
        """Tags as keys and values."""
        return {
            "tare-rental": self.rental,
            "tare-plan": self.plan,
            "tare-study": self.study,
            "tare-end-of-life": self.end_of_life.astimezone(UTC).isoformat(timespec="seconds"),
            "tare-made-by": self.made_by,
        }

    @staticmethod
    def read(texts: Mapping[str, str]) -> Tags | None:
        """Parse tags; `None` if one is missing or wrong, as the resource is then not tare's."""
        try:
            return Tags(
                texts["tare-rental"],
                texts["tare-plan"],
                texts["tare-study"],
                datetime.fromisoformat(texts["tare-end-of-life"]),
                texts["tare-made-by"],
            )
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True)
class Placement:
    """A group of machines that are near each other, or apart."""

    name: str
    strategy: str


@dataclass(frozen=True)
class Firewall:
    """Allows SSH from one network, and everything from the rental's own machines. `network`: as in the plan."""

    name: str
    ssh_from: str
    network: str | None


@dataclass(frozen=True)
class Machine:
    """`firewall`, `placement`: names. `image`: the provider's identifier.

    `public`: whether it has a public address.
    """

    name: str
    type: str
    image: str
    zone: str | None
    network: str | None
    firewall: str
    placement: str | None
    disk: DiskSpec | None
    spot: bool
    public: bool
    external_network: str | None
    user_data: str = field(repr=False)
    """Contains the machine's private host key."""


Wanted = Placement | Firewall | Machine


@dataclass(frozen=True)
class Resource:
    """A resource as the provider reports it.

    `ident`: the provider's identifier. `state`: the provider's term. `fault`: why the resource cannot run.
    """

    kind: Kind
    name: str
    ident: str
    tags: Tags
    state: str = ""
    running: bool = False
    fault: str = ""
    private_address: str | None = None
    public_address: str | None = None


@dataclass(frozen=True)
class Cost:
    """Cost of all machines together. `usd_hour`: `None` if the catalogue does not list it; `why`: the reason."""

    usd_hour: float | None
    why: str = ""


@dataclass(frozen=True)
class Offer:
    """What the provider offers for a plan. `image`: its identifier; `image_name`: its display name."""

    image: str
    image_name: str
    zone: str | None
    cost: Cost
    external_network: str | None = None


class Note(Protocol):
    """Notes in the ledger, durably, what one request is about to ask for. `name`: name of the resource."""

    def __call__(self, *kinds: Kind, name: str) -> None:
        """Note a resource for each kind.

        Without kinds: the resource noted last exists, and nothing more is requested.
        """
        ...


class Provider(Protocol):
    """A cloud. Each call ends within its time limit; each refusal is an `EnvironmentLacks` of one sentence."""

    def offer(self, plan: MachinePlan) -> Offer:
        """Check whether the plan is available: region, zone, types, image, network, credentials. Makes nothing."""
        ...

    def ask(self, wanted: Wanted, tags: Tags, note: Note) -> None:
        """Request a resource that is tagged from its creation, and noted before.

        Raises `Unanswered` if the resource noted last may exist nevertheless.
        """
        ...

    def resources(self, plan: str) -> tuple[Resource, ...]:
        """All existing resources that any tare has made for plans with this name."""
        ...

    def remove(self, resource: Resource) -> None:
        """Request the removal of a resource; it may be gone already. Raises `StillUsed` while something uses it."""
        ...
