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
    """Rename directories of plain files; the directories that name them are synced once, at the end.

    After a loss of power some may be there, and these have no record: leftovers to be dropped.
    """
    for name in names:
        for path in (source / name).iterdir():
            sync_file(path)
        sync_directory(source / name)
        (source / name).rename(target / name)
    sync_directory(target)
    sync_directory(source)
