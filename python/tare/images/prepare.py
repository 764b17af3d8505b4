"""Reference → image ready on this machine: fetched, unpacked, digested, and in the engine.

Building and unpacking happen in this process, beside the engine that gets the image; a host that is reached
over SSH would be given the finished tree.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from docker import DockerClient

from tare.errors import EnvironmentLacks
from tare.images import IMAGE_SOURCES, Image, Workshop, split_reference
from tare.images.digest import tree_digest
from tare.images.engine_image import has_image, import_tree
from tare.images.packages import installed_packages
from tare.images.shelf import Shelf, Shelved
from tare.images.unpack import unpack
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
) -> Image:
    """The image that `reference` means. What was made before is found again; `rebuild` makes it anew.

    Raises `StudyError` for a reference or an image that is wrong, `EnvironmentLacks` for what cannot be had.
    """
    shelf, workshop = Shelf(layout, ledger), Workshop(host, engine)
    scheme, rest = split_reference(reference)
    source = IMAGE_SOURCES[scheme]
    with shelf.lock():
        key = source.cache_key(rest, workshop)
        found = shelf.find(key) if key is not None and not rebuild else None
        if found is None:
            with shelf.scratch() as scratch:
                found = _make(reference, shelf, workshop, scratch)
            key = key or source.cache_key(rest, workshop)
            if key is not None:
                shelf.know(key, found.image.digest)
        return replace(_in_engine(found, shelf, engine), reference=reference)


def _make(reference: str, shelf: Shelf, workshop: Workshop, scratch: Path) -> Shelved:
    scheme, rest = split_reference(reference)
    try:
        archive = IMAGE_SOURCES[scheme].fetch(rest, workshop, scratch)
        root = scratch / "rootfs"
        root.mkdir()
        unpack(archive.layers, root)
    except OSError as error:
        raise EnvironmentLacks(
            f"the image {reference} cannot be unpacked: {error.strerror or error}",
            hint="unpacking keeps owners, so it needs root, and disk space in $TARE_HOME",
        ) from error
    digest = tree_digest(root)
    shelf.put(
        Image(reference, digest, str(root), None, archive.config, installed_packages(root)),
        root,
    )
    shelved = shelf.get(digest)
    if shelved is None:
        raise EnvironmentLacks(
            f"the image {reference} was built and is gone again", hint="is another tare cleaning?"
        )
    return shelved


def _in_engine(found: Shelved, shelf: Shelf, engine: DockerClient | None) -> Image:
    """Make sure the engine has it too, where there is one."""
    image = found.image
    if engine is None or (image.engine_id is not None and has_image(engine, image.engine_id)):
        return image
    with shelf.scratch() as scratch:
        engine_id = import_tree(engine, image, scratch)
    shelf.ledger.note(Kind.IMAGE, engine_id, keep=True)
    kept = replace(found, image=replace(image, engine_id=engine_id))
    shelf.rewrite(kept)
    return kept.image
