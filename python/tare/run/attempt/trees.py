"""Changes that bare programs of root made to the root file systems of their images."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tare.deployments import IN_TREE
from tare.images import Image
from tare.images.inodes import changed
from tare.run.at_once import at_once
from tare.run.attempt.context import Images
from tare.run.machine import Machine
from tare.sites import Host
from tare.study.model import ArmSettings


def changed_trees(machine: Machine, settings: ArmSettings, images: Images) -> list[str]:
    """Return a sentence for each image tree that no longer is as it was unpacked.

    Only trees whose programs run as root are compared: they are mounted read-only, and only root could remount
    them.
    """
    trees = {(host.name, image.rootfs): (host, image) for host, image in _trees_of(machine, settings, images)}
    changes = at_once([partial(changed, host, image) for host, image in trees.values()])
    return [
        f"a bare program changed the image {image.reference} on {host.name}: {what}"
        for (host, image), what in zip(trees.values(), changes, strict=True)
        if what
    ]


def _trees_of(machine: Machine, settings: ArmSettings, images: Images) -> Iterator[tuple[Host, Image]]:
    site = machine.site
    if settings.sut.deployment in IN_TREE:
        for number, host in enumerate(site.sut_hosts, 1):
            if _runs_as_root(image := images.of_node(number)):
                yield host, image
    client = settings.client
    if (
        client is not None
        and images.client is not None
        and client.deployment in IN_TREE
        and _runs_as_root(images.client)
    ):
        yield site.client, images.client


def _runs_as_root(image: Image) -> bool:
    return image.owner is None or image.owner.startswith("0:")
