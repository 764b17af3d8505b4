"""Owners, modes and capabilities of an image's files where the user who unpacks it may not give them.

Only root may give files away (chown(2)). A user's tree has their content, and is the user's own; the rest is kept
beside it, so that listing, digest and archive are the same as of a tree that root unpacked.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Attributes:
    """`mode`: its lowest twelve bits. `capability`: the extended attribute of a file, in hexadecimal."""

    mode: int
    uid: int = 0
    gid: int = 0
    capability: str = ""


class Known(Protocol):
    """Where attributes of paths of a tree are looked up."""

    def of(self, path: str, info: os.stat_result) -> Attributes | None:
        """Those of the path below the root, itself `.`; `None` where what is on disk holds."""
        ...


@dataclass(frozen=True)
class Noted:
    """By inode while a tree is unpacked: names of one file share them, whatever a later layer does to a name."""

    _by_inode: dict[tuple[int, int], Attributes] = field(default_factory=dict)

    def note(self, info: os.stat_result, attributes: Attributes) -> None:
        """What is at that inode now; an earlier file's note may still stand there."""
        self._by_inode[info.st_dev, info.st_ino] = attributes

    def of(self, path: str, info: os.stat_result) -> Attributes | None:
        """As `Known` has it."""
        del path
        return self._by_inode.get((info.st_dev, info.st_ino))


def mode_on_disk(mode: int, *, directory: bool) -> int:
    """What a user's own file or directory has: they alone can write it, and it has no set-id bit."""
    return mode & 0o755 | (0o700 if directory else 0o600)
