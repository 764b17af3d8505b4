"""Errors of SQLite in words: its own take a full file system for a broken disk."""

from __future__ import annotations

from pathlib import Path

from tare.full_disk import is_full

_NO_ROOM = "SQLITE_FULL"
_MAYBE_NO_ROOM = frozenset({"SQLITE_IOERR_SHMSIZE", "SQLITE_CANTOPEN"})
"""Even reading makes a file of 32 KiB beside the database (-shm): any failure to extend it, or to make it."""


def has_no_room(error: BaseException | None, directory: Path) -> bool:
    """Whether the error, or the one that SQLAlchemy wraps, means that the database's file system is full.

    `directory`: where the database is.
    """
    name = getattr(getattr(error, "orig", error), "sqlite_errorname", None)
    return name == _NO_ROOM or (name in _MAYBE_NO_ROOM and is_full(directory))


def reason_of(error: BaseException, directory: Path) -> str:
    """What went wrong, of any error of a database in `directory`."""
    if has_no_room(error, directory):
        return "its file system has no room left"
    return str(getattr(error, "orig", None) or error)


def room_hint(error: BaseException, directory: Path) -> str | None:
    """The way forward on a full file system; `None` for other errors."""
    if not has_no_room(error, directory):
        return None
    return "free 1 MiB and two inodes there; nothing of the store is damaged by that"
