"""Making files survive a loss of power: fsync(2) of the content, then of each directory that names it."""

from __future__ import annotations

import os
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
