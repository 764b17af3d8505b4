"""Files in somebody else's directory: links below it are not followed, and a FIFO keeps nobody waiting."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from tare.errors import StoreError

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NOT_PLAIN = (
    "links may lead to files outside the store: do not use somebody else's store; "
    "in your own store, replace the link by the files"
)


def open_plain(root: Path, name: str) -> BufferedReader:
    """Open the regular file `name` below `root` for reading, one component after the other.

    Raises `OSError`: ELOOP or ENOTDIR for a link below `root`, EINVAL for anything else that is no regular file.
    """
    *above, last = name.split("/")
    if ".." in (*above, last):
        raise OSError(errno.EXDEV, "the name leads out of its directory", name)
    directory = os.open(root, _DIRECTORY)
    try:
        for part in above:
            below = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = below
        handle = os.open(last, _FILE | os.O_NOFOLLOW, dir_fd=directory)
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(root / name))
    return os.fdopen(handle, "rb")


def must_be_plain(root: Path, name: str) -> None:
    """Raise `StoreError` for a link, FIFO, socket or device at `name` below `root`, on the way to it, or below it.

    A missing or unreadable component passes: the reader reports it.
    """
    path, mode = root, stat.S_IFDIR
    for part in filter(None, name.split("/")):
        path = path / part
        try:
            mode = path.lstat().st_mode
        except OSError:
            return
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise _not_plain(path, link=stat.S_ISLNK(mode))
    folders = [path] if stat.S_ISDIR(mode) else []
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    raise _not_plain(Path(entry.path), link=entry.is_symlink())


def must_be_regular(path: Path) -> None:
    """Raise `StoreError` for a FIFO, socket, device or directory, for which a reader would wait or fail.

    Links are followed: the path is the user's own. A missing file passes.
    """
    with suppress(OSError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise _not_plain(path, link=False)


def _not_plain(path: Path, *, link: bool) -> StoreError:
    if link:
        return StoreError(f"{path} is a link, and stores have no links", hint=NOT_PLAIN)
    return StoreError(f"{path} is not a regular file", hint="remove it, or restore the file from a backup")
