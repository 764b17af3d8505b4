"""The digest of a root file system: what an image is known by."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_CAPABILITY = "security.capability"
_KINDS = {stat.S_IFDIR: "dir", stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


def tree_digest(root: Path) -> str:
    """sha256 (hex) over the sorted entries: path, kind, mode, owner, content or target, capability.

    Times do not count, nor which names share an inode; so the same packages give the same digest.
    """
    total, seen = hashlib.sha256(), dict[tuple[int, int], str]()
    for path in _walk(root):
        info = path.lstat()
        kind = _KINDS.get(stat.S_IFMT(info.st_mode))
        if kind is None:
            continue  # sockets and devices are never part of an image
        content = b""
        if kind == "file":
            content = _content(path, info, seen).encode()
        elif kind == "link":
            content = os.fsencode(path.readlink())
        mode = 0 if kind == "link" else stat.S_IMODE(info.st_mode)
        name = os.fsencode(path.relative_to(root))
        head = f"{kind} {mode:o} {info.st_uid} {info.st_gid} {len(name)} {len(content)} ".encode()
        total.update(head + name + b" " + content + b" " + _capability(path) + b"\n")
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """sha256 (hex) of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _walk(root: Path) -> Iterator[Path]:
    yield root
    for directory, directories, files in os.walk(os.fsencode(root)):
        directories.sort()
        names = sorted([*directories, *files])
        for name in names:
            yield Path(os.fsdecode(directory)) / os.fsdecode(name)


def _content(path: Path, info: os.stat_result, seen: dict[tuple[int, int], str]) -> str:
    key = (info.st_dev, info.st_ino)
    if info.st_nlink == 1:
        return file_digest(path)
    if key not in seen:
        seen[key] = file_digest(path)
    return seen[key]


def _capability(path: Path) -> bytes:
    try:
        return os.getxattr(path, _CAPABILITY, follow_symlinks=False)
    except OSError:
        return b""
