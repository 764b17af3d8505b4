"""Removing an image: from the engine, then from the shelf, and never while a run uses it."""

from __future__ import annotations

from docker import DockerClient

from tare.errors import EnvironmentLacks
from tare.images.engine_image import own_name, remove_image
from tare.images.shelf import Shelf, Shelved
from tare.sites.ledger import Kind


def remove(shelved: Shelved, shelf: Shelf, engine: DockerClient | None) -> None:
    """Remove tree, this home's name of the engine's image, keys and their ledger entries. Only under the lock.

    Raises `EnvironmentLacks`, with nothing removed, while a run uses it, while a container is made of it, and
    where the engine that has it does not answer.
    """
    image = shelved.image
    with shelf.alone(image.digest):
        if image.engine_id is not None:
            if engine is None:
                raise EnvironmentLacks(
                    f"the image {image.digest[:12]} is in the engine too, and no engine answers", hint="start it"
                )
            name = own_name(image, shelf.layout.home)
            remove_image(engine, name)
            shelf.rewrite(shelved.out_of_engine())
            shelf.ledger.forget(Kind.IMAGE, name)
        shelf.remove(image.digest)
