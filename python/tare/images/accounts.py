"""The user that an image's programs run as, from the image's own accounts."""

from __future__ import annotations

from pathlib import Path

from tare.images.oci.rooted import read_inside


def owner_in(root: Path, user: str) -> str | None:
    """`UID:GID` of an image's user (`name`, `uid`, `name:group`, `uid:gid`) in its tree; `None` for root.

    IDs are the image's own: the host may know neither the name nor the ID.
    """
    name, _, group = user.partition(":")
    if name in ("", "root", "0"):
        return None
    account = next((row for row in _table(root, "etc/passwd") if len(row) > 3 and name in (row[0], row[2])), None)
    uid, gid = (account[2], account[3]) if account else (name, name)
    if group:
        groups = _table(root, "etc/group")
        gid = next((row[2] for row in groups if len(row) > 2 and group in (row[0], row[2])), group)
    return f"{uid}:{gid}"


def _table(root: Path, path: str) -> list[list[str]]:
    return [line.split(":") for line in (read_inside(root, path) or b"").decode(errors="replace").splitlines()]
