"""Making files survive a loss of power: fsync(2) of the content, then of each directory that names it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's content durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_durably(source: Path, target: Path) -> None:
    """Rename a directory of plain files so that afterwards the whole of it, or nothing, is at `target`."""
    for path in sorted(source.rglob("*")):
        if path.is_dir():
            sync_directory(path)
        else:
            sync_file(path)
    sync_directory(source)
    source.rename(target)
    sync_directory(target.parent)
    sync_directory(source.parent)


def move_all_durably(source: Path, target: Path, names: Sequence[str]) -> None:
    """Rename directories of plain files, all written back at once: one sync(2) is far less than a sync a file.

    On Linux sync(2) returns when everything is on the disk. After a loss of power some directories may have been
    renamed; these have no record yet, and are dropped as leftovers.
    """
    os.sync()
    for name in names:
        (source / name).rename(target / name)
    sync_directory(target)
    sync_directory(source)
