"""Whether a file system is full, which SQLite often takes for a broken disk."""

from __future__ import annotations

import os
from pathlib import Path

_LITTLE_BYTES = 64 << 10
"""Two pieces of the index (-shm) that SQLite keeps beside a database in WAL mode."""


def is_full(directory: Path) -> bool:
    """Whether a file system lacks room for SQLite's index, or an inode for it; `False` if it cannot be asked.

    A file system without a fixed number of inodes, such as Btrfs, reports 0 of them.
    """
    try:
        room = os.statvfs(directory)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _LITTLE_BYTES or room.f_favail == 0 < room.f_files
