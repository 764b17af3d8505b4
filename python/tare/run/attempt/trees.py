"""What bare programs of root have changed in the trees of their images."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tare.deployments import IN_TREE
from tare.images import Image
from tare.images.census import changed
from tare.run.at_once import at_once
from tare.run.attempt.context import Images
from tare.run.machine import Machine
from tare.sites import Host
from tare.study.model import ArmSettings


def changed_trees(machine: Machine, settings: ArmSettings, images: Images) -> list[str]:
    """A sentence for each tree that is not as it was unpacked; looks at no tree whose programs are a user's.

    Those cannot: it is mounted read-only, and only root could mount it anew.
    """
    trees = {(host.name, image.rootfs): (host, image) for host, image in _in_tree(machine, settings, images)}
    changes = at_once([partial(changed, host, image) for host, image in trees.values()])
    return [
        f"a bare program changed the image {image.reference} on {host.name}: {what}"
        for (host, image), what in zip(trees.values(), changes, strict=True)
        if what
    ]


def _in_tree(machine: Machine, settings: ArmSettings, images: Images) -> Iterator[tuple[Host, Image]]:
    site = machine.site
    if settings.sut.deployment in IN_TREE:
        for number, host in enumerate(site.sut_hosts, 1):
            if _of_root(image := images.of_node(number)):
                yield host, image
    client = settings.client
    if (
        client is not None
        and images.client is not None
        and client.deployment in IN_TREE
        and _of_root(images.client)
    ):
        yield site.client, images.client


def _of_root(image: Image) -> bool:
    return image.owner is None or image.owner.startswith("0:")
