"""Errors of SQLite in words: its own take a full file system for a broken disk."""

from __future__ import annotations

_NO_ROOM = frozenset({"SQLITE_IOERR_SHMSIZE", "SQLITE_FULL"})
"""The first comes even in reading, as SQLite makes a file of 32 KiB beside the database (-shm)."""


def has_no_room(error: BaseException | None) -> bool:
    """Whether the error, or the one that SQLAlchemy wraps, means that the database's file system is full."""
    return getattr(getattr(error, "orig", error), "sqlite_errorname", None) in _NO_ROOM


def reason_of(error: BaseException) -> str:
    """What went wrong, of any error of a database."""
    return "its file system has no room left" if has_no_room(error) else str(getattr(error, "orig", None) or error)


def room_hint(error: BaseException) -> str | None:
    """The way forward on a full file system; `None` for other errors."""
    return "free 1 MiB there; nothing of the store is damaged by that" if has_no_room(error) else None
