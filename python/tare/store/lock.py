"""One writer a store: a lock that the kernel drops with the process that held it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.errors import StoreError


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock (flock(2), released even by `kill -9`); `StoreError` when another process holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"the store {path.parent} cannot be written: {error.strerror}",
            hint="`tare report` reads it all the same",
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # flock(2) on NFS is fcntl(2)'s, which may say either
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise StoreError(
                f"the store {path.parent} is being written by another tare (process {holder})",
                hint="wait for it to end, or give this study a store of its own with --store",
            ) from error
        except OSError as error:
            raise StoreError(
                f"the store {path.parent} cannot be locked: {error.strerror}",
                hint="without locks, as on some network file systems, two runs may write at once: use another",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def holder(path: Path, locks: Path = Path("/proc/locks")) -> int | None:
    """The process that holds the lock, `None` where none does; the kernel's list tells, the lock is not touched.

    Lines of it: `1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF` (proc(5)). To try whether the lock can be taken
    would make a `tare run` fail that begins at the same moment.
    """
    try:
        inode, pid = str(path.stat().st_ino), path.read_text(errors="replace").strip()
        lines = [line.split() for line in locks.read_text().splitlines()]
    except OSError:
        return None
    held_by = [words[4] for words in lines if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode]
    return int(pid) if pid.isdecimal() and pid in held_by else None
