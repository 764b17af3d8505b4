"""Owners, modes and capabilities of an image's files if the user who unpacks it may not set them.

Only root may give files away (chown(2)). A user's tree holds the content and belongs to the user; the attributes
are kept beside it, so that listing, digest and archive are the same as of a tree that root unpacked.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Attributes:
    """`mode`: the lowest twelve bits. `capability`: extended attribute of a file, in hexadecimal."""

    mode: int
    uid: int = 0
    gid: int = 0
    capability: str = ""


class Known(Protocol):
    """Looks up attributes of the paths of a tree."""

    def of(self, path: str, info: os.stat_result) -> Attributes | None:
        """Attributes of a path below the root (`.` for the root); `None` if those on disk apply."""
        ...


@dataclass(frozen=True)
class Noted:
    """Attributes by inode, for a tree that is being unpacked.

    All names of a file share them, even if a later layer changes one name.
    """

    _by_inode: dict[tuple[int, int], Attributes] = field(default_factory=dict)

    def note(self, info: os.stat_result, attributes: Attributes) -> None:
        """Record the attributes at an inode; those of an earlier file there are replaced."""
        self._by_inode[info.st_dev, info.st_ino] = attributes

    def of(self, path: str, info: os.stat_result) -> Attributes | None:
        """Attributes recorded at the inode."""
        del path
        return self._by_inode.get((info.st_dev, info.st_ino))


def mode_on_disk(mode: int, *, directory: bool) -> int:
    """Mode of a user's own file or directory: writable by the user alone, and without set-id bits."""
    return mode & 0o755 | (0o700 if directory else 0o600)
