"""Verify or remove a stored image: its tree on disk, and the engine's image."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from docker import DockerClient

from tare.errors import EnvironmentLacks, StoreError
from tare.images.digest import Entry, Listed, first_difference, image_digest, list_tree
from tare.images.engine_image import (
    GIVEN_BY_ENGINE,
    config_difference,
    engine_config,
    export_tree,
    id_of,
    own_name,
    remove_image,
)
from tare.images.image_store import ImageStore, StoredImage
from tare.sites.engine import labels
from tare.sites.ledger import Kind


@dataclass(frozen=True)
class Verified:
    """Result of a verification: the first difference of tree and engine image in words; `None` if there is none.

    `engine_checked`: whether the engine was asked; it is not if none answers or the image was never in it.
    """

    digest: str
    tree: str | None
    engine: str | None
    engine_checked: bool

    @property
    def good(self) -> bool:
        """Whether nothing differs, as far as it was checked."""
        return self.tree is None and self.engine is None


def verify(stored: StoredImage, image_store: ImageStore, engine: DockerClient | None) -> Verified:
    """Compare the tree and the engine's image with the listing made with the image; reads every file twice."""
    image = stored.image
    try:
        wanted = image_store.listing(image.digest)
    except StoreError as error:
        return Verified(image.digest, f"cannot be compared: {error}", None, engine_checked=False)
    if image_digest(wanted, image.config) != image.digest:
        problem = "cannot be compared: its listing or configuration is damaged; remove the image and build it again"
        return Verified(image.digest, problem, None, engine_checked=False)
    tree = first_difference(wanted, list_tree(Path(image.rootfs), Listed(wanted) if image.listed else None))
    if engine is None or image.engine_id is None:
        return Verified(image.digest, tree, None, engine_checked=False)
    return Verified(image.digest, tree, _in_engine(stored, wanted, image_store, engine), engine_checked=True)


def _in_engine(
    stored: StoredImage, wanted: tuple[Entry, ...], image_store: ImageStore, engine: DockerClient
) -> str | None:
    engine_id, config = str(stored.image.engine_id), stored.image.config
    if id_of(engine, engine_id) is None:
        return "is gone; the next run imports it again"
    if differs := config_difference(config, engine_config(engine, engine_id)):
        return differs
    name = f"tare-verify-{uuid4().hex[:12]}"
    with image_store.scratch() as scratch:
        root = scratch / "rootfs"
        root.mkdir()
        image_store.ledger.note(Kind.CONTAINER, name)
        marks = labels(name, image_store.ledger.owner_on("local"))
        known = export_tree(engine, engine_id, root, name=name, labels=marks)
        image_store.ledger.forget(Kind.CONTAINER, name)
        return first_difference(_image_only(wanted, wanted), _image_only(list_tree(root, known), wanted))


def _image_only(tree: Iterable[Entry], wanted: Iterable[Entry]) -> list[Entry]:
    """Leave out what engines add, and the directories that they add for it unless the image has them itself."""
    own = {entry.path for entry in wanted}
    added = [*GIVEN_BY_ENGINE, *(path for path in ("etc", "run") if path not in own)]
    return [entry for entry in tree if not any(entry.path == path or _below(entry.path, path) for path in added)]


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def remove(stored: StoredImage, image_store: ImageStore, engine: DockerClient | None) -> None:
    """Remove tree, this home's name in the engine, keys and their ledger entries. Only under the lock.

    Raises `EnvironmentLacks`, with nothing removed, while a run uses the image, while a container is made of it, or
    if the engine that has the image does not answer.
    """
    image = stored.image
    with image_store.exclusive(image.digest):
        if image.engine_id is not None:
            if engine is None:
                raise EnvironmentLacks(
                    f"the image {image.digest[:12]} is in the engine too, and no engine answers", hint="start it"
                )
            name = own_name(image, image_store.layout.home)
            remove_image(engine, name)
            image_store.rewrite(stored.out_of_engine())
            image_store.ledger.forget(Kind.IMAGE, name)
        image_store.remove(image.digest)
