"""Whether an image's tree is as it was unpacked: programs of root that run bare in it could have changed it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image, census_taker
from tare.images.digest import Listed, first_difference, list_tree, parse_listing
from tare.sites import Host

_PROGRAM = Path(census_taker.__file__)
_TAKE_S = 300.0


def must_be_whole(image: Image) -> None:
    """Raise `EnvironmentLacks` where the tree on this machine differs from its listing.

    Its files are read only where their inodes tell of a change (a home that was restored from a backup), or nothing
    was told of them yet. Only under the image store's lock.
    """
    root, home = Path(image.rootfs), Path(image.rootfs).parent
    if census_taker.compare(image.rootfs, _census(image)) == []:
        return
    try:
        wanted = list(parse_listing((home / "tree.jsonl").read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError) as error:
        raise EnvironmentLacks(f"{home}/tree.jsonl cannot be read: {error}", hint=_rebuild(image)) from error
    if differs := first_difference(wanted, list_tree(root, Listed(wanted) if image.listed else None)):
        raise EnvironmentLacks(
            f"the image {image.reference} was changed on disk: it {differs}", hint=_rebuild(image)
        )
    census_taker.take(image.rootfs, _census(image))


def take(host: Host, image: Image) -> None:
    """Take down a tree of another host, just unpacked, or of which nothing was taken down yet."""
    _ask(host, "take", image)


def taken(host: Host, image: Image) -> bool:
    """Whether there is a census of it."""
    return host.run(["test", "-f", _census(image)], timeout_s=_TAKE_S, check=False).code == 0


def changed(host: Host, image: Image) -> str | None:
    """What has changed in the tree since its census, `/etc/x changed, /y new`; `None` where nothing has."""
    try:
        changes: Sequence[tuple[str, str]] | None = json.loads(_ask(host, "compare", image))
    except ValueError as error:
        raise RunFailed(f"the tree of {image.reference} on {host.name} cannot be compared: {error}") from error
    return ", ".join(f"{_shown(path)} {what}" for path, what in changes) if changes else None


def _shown(path: str) -> str:
    return "/" if path == "." else json.dumps(f"/{path}", ensure_ascii=not path.isprintable())


def _ask(host: Host, verb: str, image: Image) -> str:
    argv = ["python3", "-I", "-S", "-", verb, image.rootfs, _census(image)]
    return host.run(argv, timeout_s=_TAKE_S, stdin=_PROGRAM.read_bytes()).text


def _census(image: Image) -> str:
    return f"{image.rootfs.rpartition('/')[0]}/census"


def _rebuild(image: Image) -> str:
    return f"`tare images build {image.reference} --rebuild`"
