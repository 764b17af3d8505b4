"""From a plan to its resources, in the order in which they can be made. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from tare.sites.cloud import Firewall, Machine, Offer, Placement, Wanted
from tare.sites.cloud.keys import SshKey
from tare.sites.cloud.plan import MachinePlan
from tare.sites.cloud.user_data import Login, user_data


@dataclass(frozen=True)
class HostPlace:
    """A host's role in a site. `host`: its name in sites.yaml. `node`: from 1; `None` for the client."""

    number: int
    site: str
    host: str
    node: int | None


def places(plan: MachinePlan) -> Iterator[HostPlace]:
    """Every host: for each site the nodes, then the client."""
    for number in range(1, plan.sites + 1):
        site = f"{plan.name}-{number}"
        for node in range(1, plan.nodes + 1):
            yield HostPlace(number, site, f"s{number}-sut" if plan.nodes == 1 else f"s{number}-node{node}", node)
        yield HostPlace(number, site, f"s{number}-client", None)


def resource_name(rental: str, part: str) -> str:
    """Name of a resource at the provider."""
    return f"tare-{rental}-{part}"


@dataclass(frozen=True)
class Keys:
    """`login`: the public key with which tare logs in. `hosts`: name of each host → its host key."""

    login: str
    hosts: Mapping[str, SshKey]


def blueprint(plan: MachinePlan, offer: Offer, rental: str, end_of_life: datetime, keys: Keys) -> Iterator[Wanted]:
    """The firewall, then the placement group and machines of each site."""
    firewall = Firewall(resource_name(rental, "firewall"), plan.ssh_from, plan.network)
    yield firewall
    seen: set[str] = set()
    for place in places(plan):
        group = resource_name(rental, f"s{place.number}-placement")
        if plan.placement is not None and place.site not in seen:
            yield Placement(group, plan.placement)
        seen.add(place.site)
        yield Machine(
            name=resource_name(rental, place.host),
            type=plan.types.client if place.node is None else plan.types.sut,
            image=offer.image,
            zone=offer.zone,
            network=plan.network,
            firewall=firewall.name,
            placement=None if plan.placement is None else group,
            disk=plan.disk,
            spot=plan.spot,
            public=plan.address == "public",
            external_network=offer.external_network,
            user_data=user_data(
                place.host, keys.hosts[place.host], Login(plan.user, keys.login), end_of_life, plan.packages
            ),
        )
