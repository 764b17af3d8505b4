"""Directories of a host: remove one with all mounts below it, or set its state in the page cache."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tare.deployments.mounts import below, mountinfo_of, parse_mountinfo
from tare.errors import RunFailed
from tare.sites import Host, marks
from tare.sites.reading import last_line

_REMOVE_S = 600.0
_UNMOUNT_S = 30.0
_TRIES = 3
_ON_HOST = ("python3", "-I", "-S", "-")
MARKED = Path(__file__).with_name("marked.py")
_SHALLOWEST = 3
"""Fewest parts of a path that may be removed: never `/var/lib`, but `/var/lib/tare` if the ledger lists it."""


USER_NAMESPACE = ("unshare", "--user", "--map-root-user", "--map-auto")
"""Inside, root is the user and other IDs are the user's of subuid(5), to which files of a build may belong."""

_SETTLE_S = 4 * 3600.0
_WORTH_IT = "+255k"
"""Smallest file to evict. A database keeps about a hundred small files; its data is in the large ones."""
_AT_ONCE = ("xargs", "-0", "-r", "-P", "16", "-n", "16")
"""Sync small files in parallel, so that they share commits of the journal; one by one, each waits for its own."""


def remove_tree(host: Host, path: str) -> None:
    """Unmount everything at and below `path`, then remove it. Raises `RunFailed` if it cannot be removed.

    Files that a user's build left to other IDs of its user namespace are removed from within such a namespace.
    Nothing is removed while a mount is left: `rm` must not reach into a mounted directory.
    """
    refuse_wide(path)
    _unmount_below(host, path)
    _remove(host, path, ["rm", "-rf", "--one-file-system", "--", path])


def is_there(host: Host, path: str, home: str) -> bool:
    """Whether something is at a path that the ledger in `home` lists. Raises `RunFailed` if it is not tare's."""
    marks.refuse_path(path, home)
    done = host.run([*_ON_HOST, "look", path, home], timeout_s=_REMOVE_S, stdin=MARKED.read_bytes(), check=False)
    if done.code != 0:
        raise RunFailed(last_line(done))
    return done.text == "there"


def remove_marked(host: Host, path: str, home: str) -> None:
    """`remove_tree` of what a ledger lists: its mark is looked at in the directory that is then removed."""
    marks.refuse_path(path, home)
    _unmount_below(host, path)
    _remove(host, path, [*_ON_HOST, "remove", path, home], MARKED.read_bytes())


def _unmount_below(host: Host, path: str) -> None:
    mounted = below(parse_mountinfo(mountinfo_of(host)), path)
    for target in mounted:
        done = host.run(["umount", "--", target], timeout_s=_UNMOUNT_S, check=False)
        if done.code != 0:
            host.run(["umount", "--lazy", "--", target], timeout_s=_UNMOUNT_S, check=False)
    if mounted and (left := below(parse_mountinfo(mountinfo_of(host)), path)):
        raise RunFailed(f"{left[0]} is still mounted, so {path} was left", hint=f"umount {left[0]}")


def _remove(host: Host, path: str, argv: list[str], stdin: bytes = b"") -> None:
    for _ in range(_TRIES):  # a supervisor may be writing its last file
        done = host.run(argv, timeout_s=_REMOVE_S, stdin=stdin, check=False)
        if done.code == 0:
            return
    if b"ermission denied" in done.stderr:
        done = host.run([*USER_NAMESPACE, *argv], timeout_s=_REMOVE_S, stdin=stdin, check=False)
        if done.code == 0:
            return
    last = done.stderr.decode(errors="replace").strip().splitlines()
    raise RunFailed(f"{path} cannot be removed: {last[-1] if last else f'{argv[0]} ended with {done.code}'}")


def force_unmount(host: Host, target: str) -> bool:
    """Unmount a file system whose server may be gone; return whether it was mounted.

    Raises `RunFailed` if it stays. The unmount is forced, so that it waits for no answers, and lazy, as a program
    may still have files open; it uses no helper program and does not look at the path, since either might ask the
    server (umount(8)).
    """
    refuse_wide(target)
    there = False
    for _ in range(_TRIES):
        if target not in below(parse_mountinfo(mountinfo_of(host)), target):
            return there
        there = True
        argv = ["umount", "--internal-only", "--no-canonicalize", "--force", "--lazy", "--", target]
        host.run(argv, timeout_s=_UNMOUNT_S, check=False)
    if target in below(parse_mountinfo(mountinfo_of(host)), target):
        raise RunFailed(f"{target} is still mounted", hint=f"umount --force --lazy {target}")
    return there


def refuse_wide(path: str) -> None:
    """Raise `RunFailed` for a path that tare cannot have made.

    A damaged ledger must not cost a home or system directory.
    """
    parts = PurePosixPath(path).parts
    if parts[:1] != ("/",) or ".." in parts or len(parts) < _SHALLOWEST:
        raise RunFailed(f"{path!r} was not made by tare; it was left unchanged")


def sync_and_evict(host: Host, directory: str, *, warmed: bool) -> None:
    """Write all files back to disk and drop them from the page cache; with `warmed`, then read each file once.

    Otherwise fresh writes would be written back during the measure phase, and their cached pages would not count
    against any memory limit (Documentation/admin-guide/cgroup-v1/memory.rst, 2.3: first touch is charged).
    """
    names = host.run(["find", directory, "-type", "f", "-print0"], timeout_s=_SETTLE_S).stdout
    host.run([*_AT_ONCE, "sync", "--"], timeout_s=_SETTLE_S, stdin=names)
    forget = ["dd", "if={}", "iflag=nocache", "count=0", "status=none", ";"]
    host.run(["find", directory, "-type", "f", "-size", _WORTH_IT, "-exec", *forget], timeout_s=_SETTLE_S)
    if warmed:
        read = ["dd", "if={}", "of=/dev/null", "bs=1M", "status=none", ";"]
        host.run(["find", directory, "-type", "f", "-exec", *read], timeout_s=_SETTLE_S)
