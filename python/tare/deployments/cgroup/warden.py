"""Wait for a process, end it, or clear a cgroup. Run on the host by its own Python; standard library only.

    python3 -I -S - wait PID STARTED_TICKS STATUS_FILE      print the exit code that the supervisor wrote down
    python3 -I -S - end PID STARTED_TICKS GRACE_S [MARK]    SIGTERM, then SIGKILL after GRACE_S, if it bears MARK
    python3 -I -S - send PID STARTED_TICKS NAME [group]     send SIGNAME, also to the group that PID leads
    python3 -I -S - clear PATH MOUNT...                     kill what is in the cgroup PATH and remove it

It sleeps in the kernel (pidfd_open(2)), so that waiting takes no CPU time from the run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

MADE_BY = "TARE_MADE_BY"
_POLL_S = 0.005
_STATUS_S = 5.0
_SETTLED_S = 1.0
_CLEAR_S = 10.0


def open_pidfd(pid: int, started_ticks: int) -> int | None:
    """Open a pidfd of the process with this pid and start time; `None` if it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return handle if int(stat.rpartition(b")")[2].split()[19]) == started_ticks else None


def ended(handle: int | None, seconds: float | None) -> bool:
    """Wait up to `seconds` (`None`: forever); return whether the process has ended."""
    return handle is None or bool(select.select([handle], [], [], seconds)[0])


def wait(pid: str, started_ticks: str, status: str) -> int:
    """Wait for the process, then print its exit code. The supervisor writes the status file just after the end."""
    ended(open_pidfd(int(pid), int(started_ticks)), None)
    deadline = time.monotonic() + _STATUS_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            sys.stdout.write(Path(status).read_text())
            return 0
        time.sleep(_POLL_S)
    sys.stderr.write(f"process {pid} ended with an unknown exit code: its supervisor is gone\n")
    return 1


def made_by(pid: int, mark: str) -> bool:
    """Whether the process, or its parent (a bare task's supervisor), has the mark in its environment."""
    for each in (pid, parent_of(pid)):
        with contextlib.suppress(OSError):
            if f"{MADE_BY}={mark}".encode() in environment(each).split(b"\0"):
                return True
    return False


def environment(pid: int) -> bytes:
    """Environment of a process. While a program begins, it is empty for a moment.

    execve(2) releases the caller of vfork(2) before it tells /proc where the new environment is.
    """
    deadline = time.monotonic() + _SETTLED_S
    while not (variables := Path(f"/proc/{pid}/environ").read_bytes()) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return variables


def parent_of(pid: int) -> int:
    """Pid of the parent; 0 if the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def end(pid: str, started_ticks: str, grace_s: str, mark: str = "") -> int:
    """End a process. Signals go through the pidfd, so they reach this process or none."""
    handle = open_pidfd(int(pid), int(started_ticks))
    if mark and not ended(handle, 0) and not made_by(int(pid), mark):
        if ended(handle, 0):
            return 0
        sys.stderr.write(f"process {pid} bears no mark of the tare that the ledger names, so it was left running\n")
        return 1
    for number, patience_s in ((signal.SIGTERM, float(grace_s)), (signal.SIGKILL, _CLEAR_S)):
        if handle is not None and not ended(handle, 0):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            ended(handle, patience_s)
    if ended(handle, 0):
        return 0
    sys.stderr.write(f"process {pid} does not end even after SIGKILL\n")
    return 1


def send(pid: str, started_ticks: str, name: str, to: str = "") -> int:
    """Send a signal to a process, or to its group, which no other process can lead while it runs."""
    handle, number = open_pidfd(int(pid), int(started_ticks)), signal.Signals[f"SIG{name}"]
    if handle is not None and not ended(handle, 0):
        with contextlib.suppress(ProcessLookupError):
            if to == "group":
                os.killpg(int(pid), number)
            else:
                signal.pidfd_send_signal(handle, number)
    return 0


def clear(path: str, *mounts: str) -> int:
    """Kill the members of a cgroup until it can be removed.

    Members may fork while they are killed, and a v1 cgroup stays busy until the last one is reaped.
    """
    deadline = time.monotonic() + _CLEAR_S
    while left := [tree for tree in (cgroup(mount, path) for mount in mounts) if not removed(tree)]:
        if time.monotonic() > deadline:
            sys.stderr.write(f"the cgroup {left[0]} cannot be removed: it holds {members(left[0])}\n")
            return 1
        for tree in left:
            kill(tree)
        time.sleep(_POLL_S)
    prune(str(Path(path).parent), *mounts)
    return 0


def prune(path: str, *mounts: str) -> None:
    """Remove PATH and its ancestors in each hierarchy as far as they are empty."""
    for mount in mounts:
        left = Path(path)
        while left.name:
            try:
                cgroup(mount, str(left)).rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                break
            left = left.parent


def cgroup(mount: str, path: str) -> Path:
    """Directory of a cgroup. Never the root of a hierarchy, and never outside of it."""
    parts = Path(path).parts
    if not parts or Path(path).is_absolute() or ".." in parts:
        raise SystemExit(f"{path!r} is not a cgroup of tare")
    return Path(mount).joinpath(*parts)


def removed(tree: Path) -> bool:
    """Remove a cgroup and all below it; `False` while a process is in it."""
    for directory, _, _ in os.walk(tree, topdown=False):
        try:
            Path(directory).rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
                return False
            raise
    return not tree.exists()


def members(tree: Path) -> list[int]:
    """Process IDs in a cgroup and below it."""
    pids: list[int] = []
    for directory, _, _ in os.walk(tree):
        with contextlib.suppress(OSError):
            pids += [int(line) for line in (Path(directory) / "cgroup.procs").read_text().split()]
    return pids


def kill(tree: Path) -> None:
    """Send SIGKILL to every member."""
    for pid in members(tree):
        if pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    verbs: dict[str, Callable[..., int]] = {"wait": wait, "end": end, "send": send, "clear": clear}
    sys.exit(verbs[sys.argv[1]](*sys.argv[2:]))
