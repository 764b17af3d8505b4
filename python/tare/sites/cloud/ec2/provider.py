"""EC2 as a provider of machines: security group, placement groups, and instances with their volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from tare.errors import EnvironmentLacks
from tare.sites.cloud import Firewall, Machine, Note, Offer, Placement, Resource, Tags, Wanted
from tare.sites.cloud.ec2.offering import image_of, refuse_region, refuse_types, zone_of
from tare.sites.cloud.ec2.price import CATALOGUE_REGION, cost_of
from tare.sites.cloud.ec2.refusals import in_words, is_gone
from tare.sites.cloud.plan import DiskSpec, MachinePlan
from tare.sites.ledger import Kind

# Standard mode waits up to 20 s between tries, and obeys throttling.
_LIMITS = Config(connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 6})
_QUICK = Config(connect_timeout=5, read_timeout=15, retries={"mode": "standard", "total_max_attempts": 2})
_SOON = {"Delay": 2, "MaxAttempts": 15}
_NAME = "tare-name"
_GOING = ("shutting-down", "terminated", "deleting", "deleted")
_GONE = ("terminated", "deleted")


class Ec2:
    """One region. `session`: a boto3 session, replaced in tests that inject faults."""

    def __init__(self, region: str, session: Any = None) -> None:
        self._region = region
        self._session = session or boto3.Session(region_name=region)
        self._groups: dict[str, str] = {}
        self._roots: dict[str, str] = {}

    @cached_property
    def _ec2(self) -> Any:
        with in_words("connecting to EC2"):
            return self._session.client("ec2", region_name=self._region, config=_LIMITS)

    def offer(self, plan: MachinePlan) -> Offer:
        """Look up region, image, types, zone and network, and the cost of the machines."""
        partitions = self._session.get_available_partitions()
        refuse_region(
            plan.region,
            (region for each in partitions for region in self._session.get_available_regions("ec2", each)),
        )
        image = image_of(self._ec2, plan.image)
        refuse_types(self._ec2, plan, image)
        zone = zone_of(self._ec2, plan)
        if plan.network is not None:
            self._refuse_subnet(plan.network, zone)
        with in_words("connecting to the catalogue of prices"):
            catalogue = self._session.client("pricing", region_name=CATALOGUE_REGION, config=_QUICK)
        return Offer(image.ident, image.name, zone, cost_of(plan, zone, self._ec2, catalogue))

    def _refuse_subnet(self, network: str, zone: str) -> None:
        with in_words(f"looking for the subnet {network}"):
            subnet = self._ec2.describe_subnets(SubnetIds=[network])["Subnets"][0]
        if (place := subnet["AvailabilityZone"]) != zone:
            raise EnvironmentLacks(f"the subnet {network} is in {place}, not in {zone}", hint=f"zone: {place}")

    def ask(self, wanted: Wanted, tags: Tags, note: Note) -> None:
        """Make the resource with its tags in one request; a firewall needs a second request for its rules."""
        with in_words(f"making {wanted.name}"):
            if isinstance(wanted, Machine):
                self._run(wanted, tags, note)
            elif isinstance(wanted, Firewall):
                self._protect(wanted, tags, note)
            else:
                self._place(wanted, tags, note)

    def _place(self, wanted: Placement, tags: Tags, note: Note) -> None:
        note(Kind.PLACEMENT, name=wanted.name)
        self._ec2.create_placement_group(
            GroupName=wanted.name,
            Strategy=wanted.strategy,
            TagSpecifications=_tagged(("placement-group",), wanted.name, tags),
        )

    def _protect(self, wanted: Firewall, tags: Tags, note: Note) -> None:
        where = {} if wanted.network is None else {"VpcId": self._network_of(wanted.network)}
        note(Kind.FIREWALL, name=wanted.name)
        group = self._ec2.create_security_group(
            GroupName=wanted.name,
            Description=f"tare: machines of {tags.rental}",
            TagSpecifications=_tagged(("security-group",), wanted.name, tags),
            **where,
        )["GroupId"]
        note(name=wanted.name)  # the group exists, whatever happens next
        self._groups[wanted.name] = str(group)
        self._ec2.get_waiter("security_group_exists").wait(GroupIds=[group], WaiterConfig=_SOON)
        version = ("IpRanges", "CidrIp") if ":" not in wanted.ssh_from else ("Ipv6Ranges", "CidrIpv6")
        ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, version[0]: [{version[1]: wanted.ssh_from}]}
        among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
        self._ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[ssh, among])

    def _network_of(self, subnet: str) -> str:
        return str(self._ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"])

    def _run(self, wanted: Machine, tags: Tags, note: Note) -> None:
        interface: dict[str, Any] = {"DeviceIndex": 0, "Groups": [self._groups[wanted.firewall]]}
        interface |= {"AssociatePublicIpAddress": wanted.public, "DeleteOnTermination": True}
        if wanted.network is not None:
            interface["SubnetId"] = wanted.network
        placement = {"AvailabilityZone": wanted.zone} if wanted.zone is not None and wanted.network is None else {}
        if wanted.placement is not None:
            placement["GroupName"] = wanted.placement
        kinds = ("instance", "volume", "spot-instances-request") if wanted.spot else ("instance", "volume")
        more: dict[str, Any] = {}
        if wanted.spot:
            more["InstanceMarketOptions"] = {
                "MarketType": "spot",
                "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
            }
        if wanted.disk is not None:
            more["BlockDeviceMappings"] = [self._disk(wanted.image, wanted.disk)]
            note(Kind.DISK, Kind.MACHINE, name=wanted.name)
        else:
            note(Kind.MACHINE, name=wanted.name)
        self._ec2.run_instances(
            ImageId=wanted.image,
            InstanceType=wanted.type,
            MinCount=1,
            MaxCount=1,
            ClientToken=wanted.name,
            UserData=wanted.user_data,
            NetworkInterfaces=[interface],
            Placement=placement,
            InstanceInitiatedShutdownBehavior="terminate",
            # Containers behind a bridge are one hop further away than the host: user data holds its private key.
            MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            TagSpecifications=_tagged(kinds, wanted.name, tags),
            **more,
        )

    def _disk(self, image: str, disk: DiskSpec) -> Mapping[str, Any]:
        ebs: dict[str, Any] = {"VolumeSize": disk.size_gb, "DeleteOnTermination": True}
        if disk.kind is not None:
            ebs["VolumeType"] = disk.kind
        if disk.iops is not None:
            ebs["Iops"] = disk.iops
        if image not in self._roots:
            self._roots[image] = image_of(self._ec2, image).root
        return {"DeviceName": self._roots[image], "Ebs": ebs}

    def resources(self, plan: str) -> tuple[Resource, ...]:
        """Instances, volumes, security groups and placement groups with the plan's tag."""
        return (
            *self._there("describe_instances", plan, _instances, Kind.MACHINE),
            *self._there("describe_volumes", plan, lambda page: page["Volumes"], Kind.DISK),
            *self._there("describe_security_groups", plan, lambda page: page["SecurityGroups"], Kind.FIREWALL),
            *self._there("describe_placement_groups", plan, lambda page: page["PlacementGroups"], Kind.PLACEMENT),
        )

    def _there(self, call: str, plan: str, items: Any, kind: Kind) -> Iterator[Resource]:
        filters = [{"Name": "tag:tare-plan", "Values": [plan]}]
        with in_words("looking for what tare made"):
            if self._ec2.can_paginate(call):
                pages = list(self._ec2.get_paginator(call).paginate(Filters=filters))
            else:
                pages = [getattr(self._ec2, call)(Filters=filters)]
        for page in pages:
            for item in items(page):
                if (resource := _resource(kind, item)) is not None:
                    yield resource

    def remove(self, resource: Resource) -> None:
        """Terminate or delete a resource; one that EC2 does not know is gone."""
        if resource.state in _GOING:
            return
        calls = {
            Kind.MACHINE: lambda: self._ec2.terminate_instances(InstanceIds=[resource.ident]),
            Kind.DISK: lambda: self._ec2.delete_volume(VolumeId=resource.ident),
            Kind.FIREWALL: lambda: self._ec2.delete_security_group(GroupId=resource.ident),
            Kind.PLACEMENT: lambda: self._ec2.delete_placement_group(GroupName=resource.ident),
        }
        with in_words(f"removing {resource.name}"):
            try:
                calls[resource.kind]()
            except ClientError as error:
                if not is_gone(error):
                    raise


def _instances(page: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (instance for reservation in page["Reservations"] for instance in reservation["Instances"])


_IDENTS = {Kind.MACHINE: "InstanceId", Kind.DISK: "VolumeId", Kind.FIREWALL: "GroupId", Kind.PLACEMENT: "GroupName"}


def _resource(kind: Kind, item: Mapping[str, Any]) -> Resource | None:
    """Parse a resource; `None` if it is gone but still listed, or does not have all of tare's tags."""
    texts = {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}
    tags, state = Tags.read(texts), item.get("State", "")
    state = str(state["Name"]) if isinstance(state, Mapping) else str(state)
    if tags is None or state in _GONE:
        return None
    return Resource(
        kind=kind,
        name=texts.get(_NAME, ""),
        ident=str(item[_IDENTS[kind]]),
        tags=tags,
        state=state,
        running=state == "running",
        private_address=item.get("PrivateIpAddress"),
        public_address=item.get("PublicIpAddress"),
    )


def _tagged(kinds: Sequence[str], name: str, tags: Tags) -> list[dict[str, Any]]:
    """Tags for each kind of resource that a request makes. EC2's console shows `Name`."""
    texts = {"Name": name, _NAME: name, **tags.texts()}
    pairs = [{"Key": key, "Value": value} for key, value in texts.items()]
    return [{"ResourceType": kind, "Tags": pairs} for kind in kinds]
