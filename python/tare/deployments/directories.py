"""Directories of a host: remove one with all mounts below it, or set the state of the page cache over it."""

from __future__ import annotations

from pathlib import PurePosixPath

from tare.deployments.mounts import below, parse_mountinfo
from tare.errors import RunFailed
from tare.sites import Host

_REMOVE_S = 600.0
_UNMOUNT_S = 30.0
_TRIES = 3
_SHALLOWEST = 3
"""Parts of a path that may be removed at all: `/var/lib` never, `/var/lib/tare` if the ledger says so."""


USER_NAMESPACE = ("unshare", "--user", "--map-root-user", "--map-auto")
"""Root in there is the user, and others are those that subuid(5) gives them, whose files a build may leave."""

_SETTLE_S = 4 * 3600.0
_WORTH_IT = "+255k"
"""A database keeps some hundred small files of settings and definitions; what matters is in the large ones."""
_AT_ONCE = ("xargs", "-0", "-r", "-P", "16", "-n", "16")
"""Small files synced one after the other wait for a commit of the journal each; at once they share them."""


def remove_tree(host: Host, path: str) -> None:
    """Unmount what is mounted at and below `path`, then remove it. Raises `RunFailed` if it does not go.

    What a user's own build left to other users of its namespace goes as from within one.
    Nothing is removed while a mount is left: `rm` must not reach into what was only lent.
    """
    refuse_wide(path)
    mounted = below(parse_mountinfo(_mountinfo(host)), path)
    for target in mounted:
        done = host.run(["umount", "--", target], timeout_s=_UNMOUNT_S, check=False)
        if done.code != 0:
            host.run(["umount", "--lazy", "--", target], timeout_s=_UNMOUNT_S, check=False)
    if mounted and (left := below(parse_mountinfo(_mountinfo(host)), path)):
        raise RunFailed(f"{left[0]} is still mounted, so {path} was left", hint=f"umount {left[0]}")
    argv = ["rm", "-rf", "--one-file-system", "--", path]
    for _ in range(_TRIES):  # a supervisor may be writing its last file
        done = host.run(argv, timeout_s=_REMOVE_S, check=False)
        if done.code == 0:
            return
    if b"ermission denied" in done.stderr:
        done = host.run([*USER_NAMESPACE, *argv], timeout_s=_REMOVE_S, check=False)
        if done.code == 0:
            return
    last = done.stderr.decode(errors="replace").strip().splitlines()
    raise RunFailed(f"{path} cannot be removed: {last[-1] if last else f'rm ended with {done.code}'}")


def force_unmount(host: Host, target: str) -> bool:
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
        raise RunFailed(f"{path!r} was not made by tare; it was left unchanged")


def _mountinfo(host: Host) -> str:
    return (host.read("/proc/self/mountinfo") or b"").decode(errors="replace")


def sync_and_evict(host: Host, directory: str, *, warmed: bool) -> None:
    """Written back to disk, then out of the page cache; with `warmed`, every file is read once after that.

    What was just written would else be written back during the measure phase, and its cached pages would be charged
    to nobody's memory limit (Documentation/admin-guide/cgroup-v1/memory.rst, 2.3: first touch is charged).
    """
    names = host.run(["find", directory, "-type", "f", "-print0"], timeout_s=_SETTLE_S).stdout
    host.run([*_AT_ONCE, "sync", "--"], timeout_s=_SETTLE_S, stdin=names)
    forget = ["dd", "if={}", "iflag=nocache", "count=0", "status=none", ";"]
    host.run(["find", directory, "-type", "f", "-size", _WORTH_IT, "-exec", *forget], timeout_s=_SETTLE_S)
    if warmed:
        read = ["dd", "if={}", "of=/dev/null", "bs=1M", "status=none", ";"]
        host.run(["find", directory, "-type", "f", "-exec", *read], timeout_s=_SETTLE_S)
