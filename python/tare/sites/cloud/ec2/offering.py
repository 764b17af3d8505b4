"""Whether EC2 offers what a plan asks for, checked before anything is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from platform import machine as machine_here
from typing import Any

from tare.errors import EnvironmentLacks, StudyError
from tare.sites.cloud.ec2.refusals import in_words
from tare.sites.cloud.plan import ImageSearch, MachinePlan
from tare.study.suggest import did_you_mean


@dataclass(frozen=True)
class Image:
    """An image. `root`: device of its root file system."""

    ident: str
    name: str
    architecture: str
    root: str


def refuse_region(region: str, known: Iterable[str]) -> None:
    """Raise `StudyError` for a region that boto3 does not know."""
    if region not in (regions := sorted(known)):
        hint = did_you_mean(region, regions, kind="regions") or "a newer boto3 may know it"
        raise StudyError(f"EC2 has no region {region!r}", hint=hint)


def image_of(ec2: Any, wanted: str | ImageSearch) -> Image:
    """Find the image with an identifier, or the newest that matches a search."""
    with in_words(f"looking for the image {_named(wanted)}"):
        if isinstance(wanted, str):
            images = ec2.describe_images(ImageIds=[wanted])["Images"]
        else:
            filters = [{"Name": "name", "Values": [wanted.name]}, {"Name": "state", "Values": ["available"]}]
            images = ec2.describe_images(Owners=[wanted.owner], Filters=filters)["Images"]
    if not images:
        hint = "images differ from region to region; a name may hold * for anything"
        raise EnvironmentLacks(f"there is no image {_named(wanted)} in this region", hint=hint)
    newest = max(images, key=lambda each: (each.get("CreationDate", ""), each["ImageId"]))
    return Image(
        newest["ImageId"],
        newest.get("Name") or newest["ImageId"],
        newest.get("Architecture", ""),
        newest.get("RootDeviceName") or "/dev/sda1",
    )


def _named(wanted: str | ImageSearch) -> str:
    return wanted if isinstance(wanted, str) else f"{wanted.name} of {wanted.owner}"


def refuse_types(ec2: Any, plan: MachinePlan, image: Image) -> None:
    """Raise `EnvironmentLacks` if a type does not exist, or cannot do what the plan asks."""
    wanted = sorted({plan.types.sut, plan.types.client})
    with in_words(f"looking for the machine types {', '.join(wanted)}"):
        types = ec2.describe_instance_types(InstanceTypes=wanted)["InstanceTypes"]
    for each in types:
        if (why := _unfit(each, plan, image)) is not None:
            raise EnvironmentLacks(f"{each['InstanceType']} {why}", hint="choose another machine type")
    if here_is_another(image.architecture):
        raise EnvironmentLacks(
            f"the image {image.name} is for {image.architecture}, and tare's agent for {machine_here()} only",
            hint="run tare on a machine of the same kind",
        )


def here_is_another(architecture: str) -> bool:
    """Whether an image is for another architecture than this machine's."""
    same = {"arm64": "aarch64"}.get(architecture, architecture)
    return architecture != "" and same != machine_here()


def _unfit(about: Any, plan: MachinePlan, image: Image) -> str | None:
    known = about.get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    if known and image.architecture and image.architecture not in known:
        return f"runs {' and '.join(known)}, and the image is for {image.architecture}"
    strategies = about.get("PlacementGroupInfo", {}).get("SupportedStrategies", [])
    if plan.placement is not None and strategies and plan.placement not in strategies:
        return f"cannot be in a placement group of the kind {plan.placement}"
    usages = about.get("SupportedUsageClasses", [])
    if plan.spot and usages and "spot" not in usages:
        return "is not sold on the spot market"
    return None


def zone_of(ec2: Any, plan: MachinePlan) -> str:
    """The plan's zone, or the first one that has all types. All hosts of a plan are in one zone."""
    wanted = {plan.types.sut, plan.types.client}
    filters = [{"Name": "instance-type", "Values": sorted(wanted)}]
    with in_words(f"looking for {' and '.join(sorted(wanted))} in the zones of {plan.region}"):
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", Filters=filters
        )
        offers = [
            (each["Location"], each["InstanceType"]) for page in pages for each in page["InstanceTypeOfferings"]
        ]
    types_in = {zone: {kind for place, kind in offers if place == zone} for zone, _ in offers}
    fit = sorted(zone for zone, types in types_in.items() if wanted <= types)
    if plan.zone is None and fit:
        return str(fit[0])
    if plan.zone in fit:
        return str(plan.zone)
    hint = f"these have: {', '.join(fit)}" if fit else "choose another region or machine type"
    what = " and ".join(sorted(wanted))
    raise EnvironmentLacks(f"no {what} in {plan.zone or f'any zone of {plan.region}'}", hint=hint)
