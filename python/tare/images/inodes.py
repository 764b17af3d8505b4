"""Whether an image's tree is still as it was unpacked: a bare program of root could have changed it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image, inodes_program
from tare.images.digest import Listed, first_difference, list_tree, parse_listing
from tare.sites import Host

_PROGRAM = Path(inodes_program.__file__)
_TAKE_S = 300.0


def verify_tree(image: Image) -> None:
    """Raise `EnvironmentLacks` if the tree on this machine differs from its listing.

    Its files are read only if their inodes indicate a change (a home restored from a backup), or if there is no
    snapshot yet. Only under the image store's lock.
    """
    root, home = Path(image.rootfs), Path(image.rootfs).parent
    if inodes_program.compare(image.rootfs, _listing(image)) == []:
        return
    try:
        wanted = list(parse_listing((home / "tree.jsonl").read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError) as error:
        raise EnvironmentLacks(f"{home}/tree.jsonl cannot be read: {error}", hint=_rebuild(image)) from error
    if differs := first_difference(wanted, list_tree(root, Listed(wanted) if image.listed else None)):
        raise EnvironmentLacks(
            f"the image {image.reference} was changed on disk: it {differs}", hint=_rebuild(image)
        )
    inodes_program.take(image.rootfs, _listing(image))


def take(host: Host, image: Image) -> None:
    """Record the inode snapshot of a tree on another host: one just unpacked, or one without a snapshot yet."""
    _ask(host, "take", image)


def taken(host: Host, image: Image) -> bool:
    """Whether the host has an inode snapshot of the image."""
    return host.run(["test", "-f", _listing(image)], timeout_s=_TAKE_S, check=False).code == 0


def changed(host: Host, image: Image) -> str | None:
    """Changes in the tree since its inode snapshot, such as `/etc/x changed, /y new`; `None` if there are none."""
    try:
        changes: Sequence[tuple[str, str]] | None = json.loads(_ask(host, "compare", image))
    except ValueError as error:
        raise RunFailed(f"the tree of {image.reference} on {host.name} cannot be compared: {error}") from error
    return ", ".join(f"{_shown(path)} {what}" for path, what in changes) if changes else None


def _shown(path: str) -> str:
    return "/" if path == "." else json.dumps(f"/{path}", ensure_ascii=not path.isprintable())


def _ask(host: Host, verb: str, image: Image) -> str:
    argv = ["python3", "-I", "-S", "-", verb, image.rootfs, _listing(image)]
    return host.run(argv, timeout_s=_TAKE_S, stdin=_PROGRAM.read_bytes()).text


def _listing(image: Image) -> str:
    return f"{image.rootfs.rpartition('/')[0]}/inodes"


def _rebuild(image: Image) -> str:
    return f"`tare images build {image.reference} --rebuild`"
