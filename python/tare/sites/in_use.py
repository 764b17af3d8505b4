"""Whether a tare uses a TARE_HOME: a lock (flock(2)) that disappears with its process, however that ends.

The ledger shows it only during a run; the caches are in use between two runs as well.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.errors import EnvironmentLacks
from tare.sites.layout import make_home

_NAME = "in-use"
_LOCKS = Path("/proc/locks")
_ENDING_S, _LOOK_S = 5.0, 0.1


@contextmanager
def in_use(home: Path) -> Iterator[None]:
    """Mark the home as in use inside the context; several may. Raises `EnvironmentLacks` if it is being cleaned."""
    with _opened(home) as handle:
        if not _locked(handle, fcntl.LOCK_SH):
            raise EnvironmentLacks(
                f"{home} is being cleaned by another tare{_by(handle)}",
                hint="repeat the command when it has finished",
            )
        yield


@contextmanager
def exclusive_use(home: Path) -> Iterator[None]:
    """Keep all others from using the home inside the context. Raises `EnvironmentLacks` if it is in use."""
    if not home.is_dir():
        yield
        return
    with _opened(home) as handle:
        if not _locked(handle, fcntl.LOCK_EX):
            raise EnvironmentLacks(
                f"a running tare{_by(handle)} is using what would be removed",
                hint="wait until it ends, or stop it with Ctrl-C, then clean again",
            )
        yield


@contextmanager
def only_user(what: str, name: str) -> Iterator[None]:
    """Keep others on this machine from doing the same for the same hosts inside the context.

    A second tare in the same session would take the first one's agents for those of a dead tare, and clear up what
    is in use. The name of an abstract socket (unix(7)) is released with its process, and leaves no file. A process
    that is just ending is waited for. `name`: of session and site; `what`: description for the user.
    """
    address = "\0tare-session-" + hashlib.sha256(name.encode()).hexdigest()[:32]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mark:
        deadline = time.monotonic() + _ENDING_S
        while True:
            try:
                mark.bind(address)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise EnvironmentLacks(f"{what} cannot be marked as in use: {error.strerror}") from error
                if time.monotonic() > deadline:
                    raise EnvironmentLacks(
                        f"another tare is working for {what}",
                        hint="wait until it ends, or stop it with Ctrl-C, then repeat the command",
                    ) from error
            time.sleep(_LOOK_S)
        yield


@contextmanager
def _opened(home: Path) -> Iterator[int]:
    path = home / _NAME
    try:
        make_home(home)
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
    """The process that holds the lock, if the kernel shows it (proc_locks(5))."""
    inode = str(os.fstat(handle).st_ino)
    try:
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return ""
    pids = [
        words[4] for words in lines if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(f":{inode}")
    ]
    return f" (process {', '.join(pids)})" if pids else ""
