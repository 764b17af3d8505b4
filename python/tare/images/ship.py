"""Make an image of this machine ready on another host: a tree for bare tasks, and an image in its engine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import uuid4

from docker import DockerClient

from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image, inodes
from tare.images.engine_image import id_of, import_tree, listing_of, own_name, pack
from tare.images.image_store import ImageStore
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Ledger

FORMAT = 1
_QUICK_S, _LONG_S = 60.0, 3600.0


@dataclass(frozen=True)
class ImageDestination:
    """Destination of images: a host with its TARE_HOME and, if one answers, its engine.

    `bare`: whether tasks may run in the tree; a user's tasks cannot, so a user's images are only in the engine.
    """

    host: Host
    layout: Layout
    ledger: Ledger
    engine: DockerClient | None
    bare: bool = True


def ship(image: Image, image_store: ImageStore, destination: ImageDestination) -> Image:
    """Copy the image to a host and return it as that host has it.

    A tree there is complete if it has its description, which is written last. Raises `EnvironmentLacks` if the
    image cannot be copied.
    """
    home = f"{destination.layout.images}/{image.digest.replace(':', '-')}"
    shipped = replace(image, rootfs=f"{home}/rootfs", listed=False)
    if destination.bare:
        _bring(image, shipped, image_store, destination)
    engine = destination.engine
    engine_id = None if engine is None else _in_engine(image, image_store, destination, engine)
    return replace(shipped, engine_id=engine_id)


def _bring(image: Image, shipped: Image, image_store: ImageStore, destination: ImageDestination) -> None:
    """Copy the tree unless the host has it, and verify an existing one."""
    host, layout, differs = destination.host, destination.layout, None
    home = shipped.rootfs.rpartition("/")[0]
    try:
        if host.read(f"{home}/shipped.json") is None:
            with image_store.scratch() as scratch:
                _unpack(image, scratch / "tree.tar", destination, home)
        elif inodes.taken(host, shipped):
            differs = inodes.changed(host, shipped)
        else:
            inodes.take(host, shipped)
    except RunFailed as error:
        raise EnvironmentLacks(
            f"the image {image.reference} cannot be copied to {host.name}: {error.what}",
            hint=f"unpacking it needs root, tar and disk space in {layout.home} on {host.name}",
        ) from error
    if differs is not None:
        raise EnvironmentLacks(
            f"the image {image.reference} was changed on {host.name}: {differs}",
            hint=f"remove {home} there; tare then copies the image again",
        )


def _unpack(image: Image, archive: Path, destination: ImageDestination, home: str) -> None:
    host, ledger = destination.host, destination.ledger
    pack(Path(image.rootfs), archive, listing_of(image))
    there = f"{home}.part-{uuid4().hex[:12]}"  # another tare may copy the same image at the same time
    for path in (there, home):
        ledger.note(Kind.PATH, path, host=host.name, keep=path == home)
    images = str(destination.layout.images)
    host.run(["install", "-d", "-m", "0700", "--", images, there], timeout_s=_QUICK_S)  # as `ImageStore` has it
    host.run(["install", "-d", "-m", "0755", "--", f"{there}/rootfs"], timeout_s=_QUICK_S)
    host.put(archive, f"{there}/tree.tar", mode=0o600)
    with archive.open("rb") as file:
        sent = hashlib.file_digest(file, "sha256").hexdigest()
    got = host.run(["sha256sum", "--", f"{there}/tree.tar"], timeout_s=_LONG_S).text.split()[0]
    if got != sent:
        raise RunFailed(f"its archive arrived with another digest, {got[:12]} instead of {sent[:12]}")
    unpack = ("--extract", "--numeric-owner", "--same-permissions", "--xattrs", "--xattrs-include=*")
    host.run(["tar", *unpack, "-C", f"{there}/rootfs", "-f", f"{there}/tree.tar"], timeout_s=_LONG_S)
    host.run(["rm", "-f", "--", f"{there}/tree.tar"], timeout_s=_QUICK_S)
    inodes.take(host, replace(image, rootfs=f"{there}/rootfs"))
    description = {
        "format": FORMAT,
        "reference": image.reference,
        "digest": image.digest,
        "config": asdict(image.config),
    }
    host.put(json.dumps(description, indent=1).encode(), f"{there}/shipped.json")
    host.run(["sync", "-f", "--", there], timeout_s=_LONG_S)
    _move_in(host, there, home)
    ledger.forget(Kind.PATH, there, host=host.name)


def _move_in(host: Host, there: str, home: str) -> None:
    """Move the tree in by rename(2), which replaces no directory with entries: the first copy stays."""
    if host.run(["mv", "-T", "--", there, home], timeout_s=_QUICK_S, check=False).code == 0:
        return
    if host.read(f"{home}/shipped.json") is None:
        host.run(["rm", "-rf", "--one-file-system", "--", home], timeout_s=_LONG_S)
        host.run(["mv", "-T", "--", there, home], timeout_s=_QUICK_S)
    else:
        host.run(["rm", "-rf", "--one-file-system", "--", there], timeout_s=_LONG_S)


def _in_engine(image: Image, image_store: ImageStore, destination: ImageDestination, engine: DockerClient) -> str:
    name = own_name(image, destination.layout.home)
    if (known := id_of(engine, name)) is not None:
        return known
    destination.ledger.note(Kind.IMAGE, name, host=destination.host.name, keep=True)
    with image_store.scratch() as scratch:
        return import_tree(engine, image, scratch, name)
