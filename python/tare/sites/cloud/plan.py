"""A machine plan: which machines to rent from a cloud, and for how long.

Reference: docs/reference/machine-plan.md.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from tare.errors import StudyError
from tare.study.model import Name
from tare.study.reading.document import Document, KeyPath, Sort, read
from tare.study.reading.problems import checked
from tare.study.values import Strict

FORMAT = 1
_SORT = Sort("a machine plan", "docs/reference/machine-plan.md has an example", "name the file of the machine plan")
_YEAR_H = 366 * 24

ProviderName = Literal["ec2", "openstack"]


def _network(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(f"expected a network such as 203.0.113.7/32, got {text!r}") from None
    if "/" not in text:
        raise ValueError(f"the prefix length is missing: {text}/32 is one address")
    return text


Word = Annotated[str, Field(pattern=r"^\S+$")]
PlanName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
"""Becomes part of the names of resources at the provider."""


class MachineTypes(Strict):
    """Machine types of server and client."""

    sut: Word
    client: Word


class ImageSearch(Strict):
    """The newest image of an owner with a matching name."""

    owner: Word
    """Account number or alias of the owner."""
    name: Word
    """Name of the image; `*` matches anything."""


class DiskSpec(Strict):
    """Disk that a machine boots from; removed with it."""

    size_gb: Annotated[int, Field(ge=1, le=16384)]
    kind: Word | None = None
    """The provider's name of the disk type: `gp3`, or a Cinder volume type; default: the provider's own."""
    iops: Annotated[int, Field(ge=100, le=256000)] | None = None


def _kind(given: object) -> str | None:
    """Tag of the union's branch. It is not a key, so that errors name only keys."""
    if isinstance(given, str):
        return "<text>"
    return "<mapping>" if isinstance(given, Mapping | Strict) else None


def _either(wanted: str) -> Discriminator:
    return Discriminator(_kind, custom_error_type="which", custom_error_message=f"expected {wanted}")


Types = Annotated[
    Annotated[Word, Tag("<text>")] | Annotated[MachineTypes, Tag("<mapping>")],
    _either("a machine type, or a mapping with `sut` and `client`"),
]
Image = Annotated[
    Annotated[Word, Tag("<text>")] | Annotated[ImageSearch, Tag("<mapping>")],
    _either("an image, or a mapping with `owner` and `name`"),
]


class MachinePlan(Strict):
    """PLAN.yaml."""

    format: Literal[1]
    name: PlanName
    """Name of the machines, by which they are found."""
    study: Name
    """The study that the machines are for: a tag of every resource."""
    provider: ProviderName
    region: Word
    zone: Word | None = None
    """Default: the first zone that has all types."""
    machine: Types
    """One type for all machines, or one for servers and one for clients."""
    image: Image
    sites: Annotated[int, Field(ge=1, le=256)] = 1
    nodes: Annotated[int, Field(ge=1, le=64)] = 1
    """Hosts of the SUT in each site, in addition to the client's."""
    placement: Literal["cluster", "spread"] | None = None
    """Placement of each site's machines: near each other in the network, or on different hardware."""
    disk: DiskSpec | None = None
    spot: bool = False
    lifetime_h: Annotated[float, Field(gt=0, le=_YEAR_H)]
    """Hours after which the machines power themselves off."""
    ssh_from: Annotated[str, AfterValidator(_network)]
    """Network that may reach the machines by SSH."""
    network: Word | None = None
    """Your own subnet (EC2) or network (OpenStack); default: the provider's own."""
    address: Literal["public", "private"] = "public"
    """Which address of a machine tare connects to."""
    external_network: Word | None = None
    """Network of floating addresses (OpenStack)."""
    user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] = "root"
    """User who logs in: root, or the image's own user, who must be able to use sudo."""
    packages: Annotated[tuple[Word, ...], Field(max_length=100)] = ()
    """Packages to install on each machine at its first start."""

    @property
    def types(self) -> MachineTypes:
        """Machine types of servers and of clients."""
        return (
            self.machine
            if isinstance(self.machine, MachineTypes)
            else MachineTypes(sut=self.machine, client=self.machine)
        )

    @property
    def machines(self) -> int:
        """Number of machines in all sites."""
        return self.sites * (self.nodes + 1)


def load_plan(path: Path) -> MachinePlan:
    """Read the file at `path`. Raises `StudyError` naming file, line, column and key path."""
    return resolve(read(path, _SORT))


def plan_in(path: Path) -> MachinePlan | None:
    """The plan in a file; `None` if the file is unreadable or holds no plan, such as a sites file."""
    try:
        document = read(path, _SORT)
    except StudyError:
        return None
    return resolve(document) if "provider" in document.tree else None


def resolve(document: Document) -> MachinePlan:
    """The plan in `document`."""
    given = document.tree.get("format")
    if isinstance(given, int) and not isinstance(given, bool) and given > FORMAT:
        hint = f"this tare reads format {FORMAT}: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)
    plan = checked(MachinePlan, document)
    for key, what, hint in _REFUSED[plan.provider](plan):
        raise document.error(key, what, hint=hint)
    return plan


Fault = tuple[KeyPath, str, str]


def _of_ec2(plan: MachinePlan) -> list[Fault]:
    faults: list[Fault] = []
    if plan.external_network is not None:
        faults.append((("external_network",), "EC2 has no floating networks", "leave it out"))
    if plan.zone is not None and not plan.zone.startswith(plan.region):
        faults.append((("zone",), f"the zone {plan.zone} is not in {plan.region}", f"as {plan.region}a"))
    if isinstance(plan.image, str) and not plan.image.startswith("ami-"):
        what = f"EC2 knows images by identifiers such as ami-0123456789abcdef0, got {plan.image!r}"
        faults.append((("image",), what, "or search for it: image: {owner: NUMBER, name: PATTERN}"))
    if plan.network is not None and not plan.network.startswith("subnet-"):
        what = f"EC2 knows subnets by identifiers such as subnet-0123456789abcdef0, got {plan.network!r}"
        faults.append((("network",), what, "leave it out for the region's default network"))
    return faults


def _of_openstack(plan: MachinePlan) -> list[Fault]:
    faults: list[Fault] = []
    if plan.placement == "cluster":
        hint = "leave it out, or placement: spread"
        faults.append((("placement",), "OpenStack would put server and client on the same hardware", hint))
    if plan.spot:
        faults.append((("spot",), "OpenStack has no spot machines", "leave it out"))
    if not isinstance(plan.image, str):
        faults.append((("image",), "OpenStack knows images by name or identifier", "write one of them"))
    if plan.disk is not None and plan.disk.iops is not None:
        hint = "choose a volume type as disk.kind instead"
        faults.append((("disk", "iops"), "OpenStack has no IOPS of a volume to choose", hint))
    if plan.address == "private" and plan.external_network is not None:
        hint = "leave it out, or address: private"
        faults.append((("external_network",), "it applies only to public addresses", hint))
    return faults


_REFUSED = {"ec2": _of_ec2, "openstack": _of_openstack}
