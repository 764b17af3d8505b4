"""Make a reference's image ready on this machine: fetched, unpacked, digested, and in the engine.

Building and unpacking happen in this process, beside the engine that gets the image; a host that is reached over
SSH gets the finished tree.
"""

from __future__ import annotations

import os
from dataclasses import replace

from docker import DockerClient

from tare.errors import EnvironmentLacks
from tare.images import Image, Workshop
from tare.images.accounts import owner_in
from tare.images.digest import image_digest, list_tree
from tare.images.engine_image import id_of, import_tree, own_name
from tare.images.image_store import ImageStore, StoredImage
from tare.images.inodes import verify_tree
from tare.images.oci.unpack import unpack
from tare.images.packages import installed_packages
from tare.images.registry import IMAGE_SOURCES, split_reference
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Ledger


def prepare(  # noqa: PLR0913 - the parts of a machine, each by name
    reference: str,
    *,
    host: Host,
    layout: Layout,
    ledger: Ledger,
    engine: DockerClient | None,
    rebuild: bool = False,
    hold: bool = True,
) -> Image:
    """Return the image that `reference` means. An image made before is found again; `rebuild` makes it anew.

    `hold`: the image cannot be removed while this process lives. Raises `StudyError` for a wrong reference or
    image, and `EnvironmentLacks` for one that cannot be obtained.
    """
    image_store = ImageStore(layout, ledger)
    workshop = Workshop(host, engine, image_store)
    try:
        if not rebuild and (ready := _ready(reference, image_store, workshop, hold=hold)) is not None:
            return ready
        with image_store.builder(reference):
            if not rebuild and (ready := _ready(reference, image_store, workshop, hold=hold)) is not None:
                return ready  # built by the builder that was waited for
            return _built(reference, image_store, workshop, hold=hold)
    except OSError as error:
        raise EnvironmentLacks(
            f"the image {reference} cannot be prepared: {error.strerror or error}{_where(error)}",
            hint="it needs disk space in $TARE_HOME, and you must own everything in that directory",
        ) from error


def into(image: Image, *, layout: Layout, ledger: Ledger, engine: DockerClient) -> Image:
    """Import the image into one more engine and return it with its ID there; `ledger` is that engine's."""
    image_store, name = ImageStore(layout, ledger), own_name(image, layout.home)
    with image_store.lock():
        engine_id = id_of(engine, name)
        if engine_id is None:
            ledger.note(Kind.IMAGE, name, keep=True)
            with image_store.scratch() as scratch:
                engine_id = import_tree(engine, image, scratch, name)
        return replace(image, engine_id=engine_id)


def _ready(reference: str, image_store: ImageStore, workshop: Workshop, *, hold: bool) -> Image | None:
    """The image if it is ready. Waits for no build: a build of another image may take minutes."""
    scheme, rest = split_reference(reference)
    with image_store.lock():
        image_store.sweep()
        key = IMAGE_SOURCES[scheme].cache_key(rest, workshop)
        stored = image_store.find(key) if key is not None else None
        if stored is None or (
            stored.image.listed and os.geteuid() == 0
        ):  # root has the owners on disk, for bare arms
            return None
        return _verified(reference, stored, image_store, workshop.engine, hold=hold)


def _built(reference: str, image_store: ImageStore, workshop: Workshop, *, hold: bool) -> Image:
    scheme, rest = split_reference(reference)
    source = IMAGE_SOURCES[scheme]
    with image_store.scratch() as scratch:
        archive = source.fetch(rest, workshop, scratch)
        root = scratch / "rootfs"
        root.mkdir()
        noted = unpack(archive.layers, root)
        tree = tuple(list_tree(root, noted))
        digest = image_digest(tree, archive.config)
        owner = owner_in(root, archive.config.user)
        packages = installed_packages(root)
        listed = noted is not None
        image = Image(reference, digest, str(root), None, archive.config, packages, owner=owner, listed=listed)
        key = source.cache_key(rest, workshop)
        with image_store.lock():
            stored = image_store.put(image, tree, root)
            if key is not None:
                image_store.remember(key, stored.image.digest)
            return _verified(reference, stored, image_store, workshop.engine, hold=hold)


def _verified(
    reference: str, stored: StoredImage, image_store: ImageStore, engine: DockerClient | None, *, hold: bool
) -> Image:
    """Verify the image, import it into the engine and hold it. Only under the lock."""
    verify_tree(stored.image)
    image = _in_engine(stored, image_store, engine)
    if hold:
        image_store.hold(image.digest)
    return replace(image, reference=reference)


def _in_engine(stored: StoredImage, image_store: ImageStore, engine: DockerClient | None) -> Image:
    """Import the image into the engine, if there is one and it does not have it."""
    image, name = stored.image, own_name(stored.image, image_store.layout.home)
    if engine is None or (image.engine_id is not None and id_of(engine, name) == image.engine_id):
        return image
    image_store.ledger.note(Kind.IMAGE, name, keep=True)
    with image_store.scratch() as scratch:
        engine_id = import_tree(engine, image, scratch, name)
    kept = replace(stored, image=replace(image, engine_id=engine_id))
    image_store.rewrite(kept)
    return kept.image


def _where(error: OSError) -> str:
    return f": {error.filename}" if isinstance(error.filename, str) else ""
