"""Machines from a cloud: what tare asks a provider for, and what a provider says that there is.

A *rental* is what one `tare sites create` makes. Each resource has a name that tare chooses: it stands in the
ledger before it is asked for, and the resource bears it as a tag, so that it can be seen again whatever happened.
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
    """A request without an answer: the provider may have done what was asked, or not."""


class StillUsed(EnvironmentLacks):
    """What cannot be removed yet, as something else uses it."""


@dataclass(frozen=True)
class Tags:
    """What every resource of a rental bears. `made_by`: user and machine that ran tare."""

    rental: str
    plan: str
    study: str
    end_of_life: datetime
    made_by: str

    def texts(self) -> dict[str, str]:
        """As key and value."""
        return {
            "tare-rental": self.rental,
            "tare-plan": self.plan,
            "tare-study": self.study,
            "tare-end-of-life": self.end_of_life.astimezone(UTC).isoformat(timespec="seconds"),
            "tare-made-by": self.made_by,
        }

    @staticmethod
    def read(texts: Mapping[str, str]) -> Tags | None:
        """The other way; `None` where one is missing or wrong: then it is none of tare's."""
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
    """A group of machines that stand near each other, or apart."""

    name: str
    strategy: str


@dataclass(frozen=True)
class Firewall:
    """Lets in SSH from one network, and everything from the rental's own machines. `network`: as in the plan."""

    name: str
    ssh_from: str
    network: str | None


@dataclass(frozen=True)
class Machine:
    """`firewall`, `placement`: names. `image`: as the provider identifies it. `public`: with a public address."""

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
    """It has the machine's private host key."""


Wanted = Placement | Firewall | Machine


@dataclass(frozen=True)
class Resource:
    """What a provider has. `ident`: its own name for it. `state`: in its own words. `fault`: why it cannot run."""

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
    """Of all machines together. `usd_hour`: `None` where the catalogue does not say, and `why` it does not."""

    usd_hour: float | None
    why: str = ""


@dataclass(frozen=True)
class Offer:
    """What the provider has for a plan. `image`: its identifier; `image_name`: what people call it."""

    image: str
    image_name: str
    zone: str | None
    cost: Cost
    external_network: str | None = None


class Note(Protocol):
    """Writes into the ledger, durably, what one request is about to ask for. `name`: of the resource."""

    def __call__(self, *kinds: Kind, name: str) -> None:
        """Without kinds: nothing is asked for any more, what was noted is there."""
        ...


class Provider(Protocol):
    """A cloud. Each call ends within its time limit; each refusal is an `EnvironmentLacks` of one sentence."""

    def offer(self, plan: MachinePlan) -> Offer:
        """Whether the plan can be had: region, zone, types, image, network, credentials. Makes nothing."""
        ...

    def ask(self, wanted: Wanted, tags: Tags, note: Note) -> None:
        """Ask for a resource, tagged from its first moment, and noted before.

        Raises `Unanswered` where what was noted last may be there all the same.
        """
        ...

    def resources(self, plan: str) -> tuple[Resource, ...]:
        """All that tare ever made for plans of that name and that is still there, whoever made it."""
        ...

    def remove(self, resource: Resource) -> None:
        """Ask for its removal; what is gone already is no error. Raises `StillUsed` where something uses it yet."""
        ...
