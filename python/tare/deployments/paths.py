"""Removing what was made on a host's file system, with whatever is still mounted below it."""

from __future__ import annotations

from pathlib import PurePosixPath

from tare.deployments.mountinfo import below, parse_mountinfo
from tare.errors import RunFailed
from tare.sites import Host

_REMOVE_S = 600.0
_UNMOUNT_S = 30.0
_TRIES = 3
_SHALLOWEST = 3
"""Parts of a path that may be removed at all: `/var/lib` never, `/var/lib/tare` if the ledger says so."""


def remove_tree(host: Host, path: str) -> None:
    """Unmount what is mounted at and below `path`, then remove it. Raises `RunFailed` if it does not go.

    Nothing is removed while a mount is left: `rm` must not reach into what was only lent.
    """
    refuse_wide(path)
    for target in below(parse_mountinfo(_mountinfo(host)), path):
        done = host.run(["umount", "--", target], timeout_s=_UNMOUNT_S, check=False)
        if done.code != 0:
            host.run(["umount", "--lazy", "--", target], timeout_s=_UNMOUNT_S, check=False)
    if left := below(parse_mountinfo(_mountinfo(host)), path):
        raise RunFailed(f"{left[0]} is still mounted, so {path} was left", hint=f"umount {left[0]}")
    argv = ["rm", "-rf", "--one-file-system", "--", path]
    for _ in range(_TRIES):  # a supervisor may be writing its last file
        done = host.run(argv, timeout_s=_REMOVE_S, check=False)
        if done.code == 0:
            return
    last = done.stderr.decode(errors="replace").strip().splitlines()
    raise RunFailed(f"{path} cannot be removed: {last[-1] if last else f'rm ended with {done.code}'}")


def let_go(host: Host, target: str) -> bool:
    """Take away a mount whose server may be gone; whether there was one. Raises `RunFailed` if it does not go.

    Forced, so that nothing waits for answers that will not come, and lazily, in case somebody still has it open;
    without a helper program or a look at the path, either of which might ask the server (umount(8)).
    """
    refuse_wide(target)
    there = False
    for _ in range(_TRIES):
        if target not in below(parse_mountinfo(_mountinfo(host)), target):
            return there
        there = True
        argv = ["umount", "--internal-only", "--no-canonicalize", "--force", "--lazy", "--", target]
        host.run(argv, timeout_s=_UNMOUNT_S, check=False)
    if target in below(parse_mountinfo(_mountinfo(host)), target):
        raise RunFailed(f"{target} is still mounted", hint=f"umount --force --lazy {target}")
    return there


def refuse_wide(path: str) -> None:
    """A damaged ledger must not cost a home or a system directory."""
    parts = PurePosixPath(path).parts
    if parts[:1] != ("/",) or ".." in parts or len(parts) < _SHALLOWEST:
        raise RunFailed(f"{path!r} is no path that tare would have made; it was left alone")


def _mountinfo(host: Host) -> str:
    return (host.read("/proc/self/mountinfo") or b"").decode(errors="replace")
