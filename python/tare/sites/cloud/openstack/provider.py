"""OpenStack as a provider of machines: security and server groups, servers with volumes, ports, addresses."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import openstack
from openstack import exceptions as sdk

from tare.errors import EnvironmentLacks
from tare.sites.cloud import Cost, Firewall, Machine, Note, Offer, Placement, Resource, Tags, Wanted
from tare.sites.cloud.openstack.marks import NAME, described, of_group, read_description
from tare.sites.cloud.openstack.refusals import in_words
from tare.sites.cloud.plan import MachinePlan
from tare.sites.ledger import Kind
from tare.study.suggest import did_you_mean

_CALL_S = 60
_VOLUMES = ("block-storage", "block-store", "volumev3")
"""Names of Cinder in service catalogues (https://service-types.openstack.org)."""
_VOLUME_S, _POLL_S = 600.0, 1.0
_ANTI_AFFINITY = "anti-affinity"
_GROUPS_WITH_ONE_POLICY = "2.64"
"""From this microversion on, a server group has `policy` instead of `policies`."""
_NO_PRICES = "OpenStack has no catalogue of prices"


class OpenStack:
    """One region of the cloud in openstacksdk's own configuration. `connection`: for tests."""

    def __init__(self, region: str, connection: Any = None) -> None:
        self._region = region
        self._given = connection
        self._firewalls: dict[str, str] = {}
        self._groups: dict[str, str] = {}

    @cached_property
    def _cloud(self) -> Any:
        with in_words("connecting to OpenStack"):
            cloud = self._given or openstack.connect(region_name=self._region, api_timeout=_CALL_S)
            cloud.authorize()
            return cloud

    def offer(self, plan: MachinePlan) -> Offer:
        """Look up image, flavors, zone and networks. OpenStack does not report prices."""
        image = self._named("image", self._cloud.image, plan.image)
        for flavor in {plan.types.sut, plan.types.client}:
            self._named("flavor", self._cloud.compute, flavor)
        if plan.zone is not None:
            self._refuse_zone(plan.zone)
        self._network(plan.network)
        external = self._external(plan.external_network) if plan.address == "public" else None
        return Offer(image.id, str(image.name), plan.zone, Cost(None, _NO_PRICES), external)

    def _named(self, what: str, service: Any, name: Any) -> Any:
        with in_words(f"looking for the {what} {name}"):
            try:
                return getattr(service, f"find_{what}")(name, ignore_missing=False)
            except sdk.NotFoundException:
                names = [str(each.name) for each in getattr(service, f"{what}s")()]
        hint = did_you_mean(str(name), names, kind=f"{what}s") or f"see: openstack {what} list"
        raise EnvironmentLacks(f"this cloud has no {what} {name!r}", hint=hint)

    def _refuse_zone(self, zone: str) -> None:
        with in_words(f"looking for the zone {zone}"):
            zones = [each.name for each in self._cloud.compute.availability_zones()]
        if zone not in zones:
            raise EnvironmentLacks(f"this cloud has no zone {zone!r}", hint=did_you_mean(zone, zones, kind="zones"))

    def _network(self, name: str | None) -> str:
        """The plan's network, or the project's only one."""
        if name is not None:
            return str(self._named("network", self._cloud.network, name).id)
        with in_words("looking for networks"):
            mine = [each for each in self._cloud.network.networks() if not each.is_router_external]
        return self._only(mine, "network", "network")

    def _external(self, name: str | None) -> str:
        if name is not None:
            return str(self._named("network", self._cloud.network, name).id)
        with in_words("looking for external networks"):
            there = list(self._cloud.network.networks(is_router_external=True))
        return self._only(there, "external network", "external_network")

    @staticmethod
    def _only(networks: list[Any], what: str, key: str) -> str:
        if len(networks) == 1:
            return str(networks[0].id)
        names = ", ".join(sorted(str(each.name) for each in networks))
        if not networks:
            raise EnvironmentLacks(f"this cloud shows no {what}", hint="ask the operator; or address: private")
        raise EnvironmentLacks(f"this cloud has several {what}s: {names}", hint=f"name one in the plan as {key}")

    def ask(self, wanted: Wanted, tags: Tags, note: Note) -> None:
        """Make a resource. A machine takes up to four requests: volume, port, server, address."""
        with in_words(f"making {wanted.name}"):
            if isinstance(wanted, Machine):
                self._boot(wanted, tags, note)
            elif isinstance(wanted, Firewall):
                self._protect(wanted, tags, note)
            else:
                self._place(wanted, note)

    def _place(self, wanted: Placement, note: Note) -> None:
        note(Kind.PLACEMENT, name=wanted.name)
        group = self._cloud.compute.create_server_group(name=wanted.name, **self._policy())
        self._groups[wanted.name] = str(group.id)

    def _policy(self) -> Mapping[str, Any]:
        one = openstack.utils.supports_microversion(self._cloud.compute, _GROUPS_WITH_ONE_POLICY)
        return {"policy": _ANTI_AFFINITY} if one else {"policies": [_ANTI_AFFINITY]}

    def _protect(self, wanted: Firewall, tags: Tags, note: Note) -> None:
        network = self._cloud.network
        note(Kind.FIREWALL, name=wanted.name)
        group = network.create_security_group(name=wanted.name, description=described(wanted.name, tags))
        note(name=wanted.name)  # the group exists, whatever happens next
        version = "IPv6" if ":" in wanted.ssh_from else "IPv4"
        common = {"security_group_id": group.id, "direction": "ingress"}
        ssh = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": wanted.ssh_from}
        network.create_security_group_rule(**common, ether_type=version, **ssh)
        network.create_security_group_rule(**common, ether_type="IPv4", remote_group_id=group.id)
        self._firewalls[wanted.name] = str(group.id)

    def _boot(self, wanted: Machine, tags: Tags, note: Note) -> None:
        compute, network = self._cloud.compute, self._cloud.network
        texts = {NAME: wanted.name, **tags.texts()}
        start = self._volume(wanted, texts, note) if wanted.disk is not None else {"image_id": wanted.image}
        note(Kind.PORT, name=wanted.name)
        port = network.create_port(
            name=wanted.name,
            description=described(wanted.name, tags),
            network_id=self._network(wanted.network),
            security_groups=[self._firewalls[wanted.firewall]],
        )
        hints = {} if wanted.placement is None else {"scheduler_hints": {"group": self._groups[wanted.placement]}}
        zone = {} if wanted.zone is None else {"availability_zone": wanted.zone}
        flavor = compute.find_flavor(wanted.type, ignore_missing=False)
        note(Kind.MACHINE, name=wanted.name)
        compute.create_server(
            name=wanted.name,
            flavor_id=flavor.id,
            networks=[{"port": port.id}],
            user_data=base64.b64encode(wanted.user_data.encode()).decode(),
            config_drive=True,
            metadata=texts,
            **start,
            **zone,
            **hints,
        )
        if wanted.external_network is not None:
            note(Kind.ADDRESS, name=wanted.name)
            network.create_ip(
                floating_network_id=wanted.external_network,
                port_id=port.id,
                description=described(wanted.name, tags),
            )

    def _volume(self, wanted: Machine, texts: Mapping[str, str], note: Note) -> Mapping[str, Any]:
        """A boot volume made from the image; it must be complete before a server can use it."""
        assert wanted.disk is not None  # noqa: S101 - for the type alone: the caller has checked
        storage = self._cloud.block_storage
        kind = {} if wanted.disk.kind is None else {"volume_type": wanted.disk.kind}
        zone = {} if wanted.zone is None else {"availability_zone": wanted.zone}
        note(Kind.DISK, name=wanted.name)
        volume = storage.create_volume(
            name=wanted.name, size=wanted.disk.size_gb, image_id=wanted.image, metadata=texts, **kind, **zone
        )
        note(name=wanted.name)  # the volume exists, whatever happens next
        deadline = time.monotonic() + _VOLUME_S
        while volume.status != "available":
            if volume.status.startswith("error") or time.monotonic() >= deadline:
                raise EnvironmentLacks(
                    f"the volume {wanted.name} of {wanted.disk.size_gb} GB is {volume.status}",
                    hint="ask the operator why, or take a machine type with a disk of its own",
                )
            time.sleep(_POLL_S)
            volume = storage.get_volume(volume.id)
        mapping = {"uuid": volume.id, "source_type": "volume", "destination_type": "volume", "boot_index": 0}
        return {"block_device_mapping": [{**mapping, "delete_on_termination": True}]}

    def resources(self, plan: str) -> tuple[Resource, ...]:
        """Servers, volumes, ports, addresses, security groups and server groups with the plan's tag."""
        with in_words("looking for what tare made"):
            return tuple(each for each in self._all() if each.tags.plan == plan)

    def _all(self) -> Iterator[Resource]:
        cloud = self._cloud
        ips = list(cloud.network.ips())
        public = {each.port_id: each.floating_ip_address for each in ips if each.port_id}
        ports = list(cloud.network.ports())
        port_of = {each.device_id: each for each in ports if each.device_id}
        for each in cloud.compute.servers(details=True):
            if (server := _of_texts(Kind.MACHINE, each, each.metadata or {}, state=each.status)) is not None:
                yield _with_addresses(server, each, port_of.get(each.id), public)
        if any(each["type"] in _VOLUMES for each in cloud.service_catalog):
            for each in cloud.block_storage.volumes(details=True):
                yield from _some(_of_texts(Kind.DISK, each, each.metadata or {}, state=each.status))
        for kind, things in (
            (Kind.ADDRESS, ips),
            (Kind.PORT, ports),
            (Kind.FIREWALL, cloud.network.security_groups()),
        ):
            for each in things:
                yield from _some(_of_texts(kind, each, read_description(each.description)))
        for each in cloud.compute.server_groups():
            if (tags := of_group(str(each.name))) is not None:
                yield Resource(Kind.PLACEMENT, str(each.name), str(each.id), tags)

    def remove(self, resource: Resource) -> None:
        """Delete a resource; one that OpenStack does not know is gone."""
        cloud = self._cloud
        calls = {
            Kind.ADDRESS: lambda: cloud.network.delete_ip(resource.ident),
            Kind.MACHINE: lambda: cloud.compute.delete_server(resource.ident),
            Kind.DISK: lambda: cloud.block_storage.delete_volume(resource.ident),
            Kind.PORT: lambda: cloud.network.delete_port(resource.ident),
            Kind.FIREWALL: lambda: cloud.network.delete_security_group(resource.ident),
            Kind.PLACEMENT: lambda: cloud.compute.delete_server_group(resource.ident),
        }
        with in_words(f"removing {resource.name}"):
            try:
                calls[resource.kind]()
            except sdk.NotFoundException:
                return


def _some(resource: Resource | None) -> Iterator[Resource]:
    if resource is not None:
        yield resource


def _of_texts(kind: Kind, thing: Any, texts: Mapping[str, str], state: str | None = None) -> Resource | None:
    tags = Tags.read(texts)
    return None if tags is None else Resource(kind, texts.get(NAME, ""), str(thing.id), tags, state or "")


def _with_addresses(server: Resource, thing: Any, port: Any, public: Mapping[str, str]) -> Resource:
    """Add addresses, which are those of the server's port, and Nova's fault of a server in the state ERROR."""
    fixed = [each["ip_address"] for each in port.fixed_ips if "." in each["ip_address"]] if port else []
    fault = str((thing.fault or {}).get("message") or "Nova says ERROR") if server.state == "ERROR" else ""
    return Resource(
        server.kind,
        server.name,
        server.ident,
        server.tags,
        state=server.state,
        running=server.state == "ACTIVE",
        fault=fault,
        private_address=fixed[0] if fixed else None,
        public_address=public.get(port.id) if port else None,
    )
