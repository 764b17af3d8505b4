"""Whether a tare is at work with a TARE_HOME: a lock (flock(2)) that goes away with its process, however that ends.

The ledger says it only while a run is under way; between two runs the caches have a user all the same.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.errors import EnvironmentLacks

_NAME = "in-use"
_LOCKS = Path("/proc/locks")


@contextmanager
def in_use(home: Path) -> Iterator[None]:
    """Say so while this lasts; several may. Raises `EnvironmentLacks` where it is being cleaned."""
    with _opened(home) as handle:
        if not _locked(handle, fcntl.LOCK_SH):
            raise EnvironmentLacks(
                f"{home} is being cleaned by another tare{_by(handle)}", hint="repeat the command when that is done"
            )
        yield


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Nobody else may use it while this lasts. Raises `EnvironmentLacks` where somebody does."""
    if not home.is_dir():
        yield
        return
    with _opened(home) as handle:
        if not _locked(handle, fcntl.LOCK_EX):
            raise EnvironmentLacks(
                f"a running tare{_by(handle)} is using what would be removed",
                hint="let it end, or stop it with Ctrl-C, then clean again",
            )
        yield


@contextmanager
def _opened(home: Path) -> Iterator[int]:
    path = home / _NAME
    try:
        home.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise EnvironmentLacks(f"{path} cannot be opened: {error.strerror}", hint="see TARE_HOME") from error
    try:
        yield handle
    finally:
        os.close(handle)


def _locked(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _by(handle: int) -> str:
    """Which process holds it, where the kernel shows that (proc_locks(5))."""
    inode = str(os.fstat(handle).st_ino)
    try:
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return ""
    pids = [
        words[4] for words in lines if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(f":{inode}")
    ]
    return f" (process {', '.join(pids)})" if pids else ""
