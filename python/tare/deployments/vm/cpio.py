"""An initial RAM file system in the kernel's format: cpio "newc" (Documentation/driver-api/early-userspace/)."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_MAGIC = "070701"
_END = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """`mode`: includes the file type. `content`: of a file, or the target of a link.

    `major`, `minor`: of a device node.
    """

    name: str
    mode: int
    content: bytes = b""
    major: int = 0
    minor: int = 0


def directory(name: str) -> Entry:
    """A directory that everyone may enter."""
    return Entry(name, stat.S_IFDIR | 0o755)


def program(name: str, content: bytes) -> Entry:
    """An executable file."""
    return Entry(name, stat.S_IFREG | 0o755, content)


def link(name: str, target: str) -> Entry:
    """A symbolic link."""
    return Entry(name, stat.S_IFLNK | 0o777, target.encode())


def archive(entries: Iterable[Entry]) -> bytes:
    """Pack the whole archive; a directory must come before its entries."""
    packed = bytearray()
    for number, entry in enumerate((*entries, Entry(_END, 0)), start=1):
        name = entry.name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(entry.mode) else 1
        fields = (number, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, entry.major, entry.minor)
        packed += (_MAGIC + "".join(f"{field:08X}" for field in (*fields, len(name), 0))).encode()
        packed += name
        packed += bytes(-len(packed) % 4)
        packed += entry.content
        packed += bytes(-len(packed) % 4)
    return bytes(packed)
