"""/proc/PID/mountinfo (proc_pid_mountinfo(5)) as values, and the disk that a directory lies on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tare.errors import EnvironmentLacks
from tare.sites import Host

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One mount. `root` is the part of its file system that is mounted, `device` its "major:minor"."""

    device: str
    root: str
    target: str
    options: tuple[str, ...]
    fstype: str
    source: str
    super_options: tuple[str, ...]


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """In the order of the file, in which a later mount on the same target covers an earlier one."""
    return tuple(_parse_line(line) for line in text.splitlines() if line)


def describe_mount(mount: Mount) -> str:
    """`ext4 254:0`; of a network's file system with the server's address: `nfs4 0:53 10.231.0.2`."""
    address = next((option.partition("=")[2] for option in mount.super_options if option.startswith("addr=")), "")
    return f"{mount.fstype} {mount.device} {address}".rstrip()


def covering(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    """The mount on which `path` (absolute, without links) lies."""
    best: Mount | None = None
    for mount in mounts:
        inside = path == mount.target or path.startswith(mount.target.rstrip("/") + "/")
        if inside and (best is None or len(mount.target) >= len(best.target)):
            best = mount
    return best


def below(mounts: tuple[Mount, ...], path: str) -> tuple[str, ...]:
    """Targets at or below `path`, in the order in which they can be unmounted."""
    prefix = path.rstrip("/") + "/"
    inside = [mount.target for mount in mounts if mount.target == path or mount.target.startswith(prefix)]
    return tuple(reversed(inside))


def _parse_line(line: str) -> Mount:
    front, _, back = line.partition(" - ")
    fields, tail = front.split(" "), back.split(" ")
    return Mount(
        device=fields[2],
        root=_unescape(fields[3]),
        target=_unescape(fields[4]),
        options=tuple(fields[5].split(",")),
        fstype=tail[0],
        source=_unescape(tail[1]),
        super_options=tuple(tail[2].split(",")) if len(tail) > 2 else (),
    )


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)


_CALL_S = 60.0


def lying_under(host: Host, path: str) -> Mount:
    """The mount on which a directory of the host lies."""
    text = (host.read("/proc/self/mountinfo") or b"").decode(errors="replace")
    real = host.run(["realpath", "--", path], timeout_s=_CALL_S).text.rstrip("\n")
    mount = covering(parse_mountinfo(text), real)
    if mount is None:
        raise EnvironmentLacks(f"the kernel does not say on which file system {path} lies")
    return mount


def must_share_disk(host: Host, engines: str, ours: str) -> None:
    """Raise `EnvironmentLacks` where what the engine keeps is on another disk than tare's own directories."""
    theirs, own = lying_under(host, engines), lying_under(host, ours)
    # Subvolumes of one btrfs have a device number each, and their device in common.
    if theirs.device == own.device or (theirs.source == own.source and own.source.startswith("/dev/")):
        return
    there, here = (f"{each.fstype} on {each.source} ({each.device})" for each in (theirs, own))
    raise EnvironmentLacks(
        f"the engine's {engines} lies on {there}, tare's {ours} on {here}: arms would differ by their disk",
        hint="set TARE_HOME to a directory of the engine's file system, or move the engine's data (`data-root`)",
    )


@dataclass(frozen=True)
class Place:
    """Where a mount of a process's lies on its host."""

    path: str
    mount: Mount


def place_on_host(host: Host, pid: int, target: str) -> Place | None:
    """The directory of the host's that a process sees at `target`, `None` where no mount of the host's shows it.

    By device and root of both mounts, and by the directory being the very same one.
    """
    texts = [(host.read(f"/proc/{who}/mountinfo") or b"").decode(errors="replace") for who in (pid, "self")]
    inside, outside = (parse_mountinfo(text) for text in texts)
    mount = covering(inside, target)
    if mount is None or mount.target != target:
        return None
    for path in _shown_at(mount, outside):
        argv = ["stat", "-c", "%d:%i", "--", path, f"/proc/{pid}/root{target}"]
        done = host.run(argv, timeout_s=_CALL_S, check=False)
        if done.code == 0 and len(set(done.text.split())) == 1:
            return Place(path, mount)
    return None


def _shown_at(mount: Mount, outside: tuple[Mount, ...]) -> list[str]:
    """Paths at which mounts of the same file system would show it, the closest mount first."""
    shown = [
        (len(each.root), each.target.rstrip("/") + mount.root[len(each.root.rstrip("/")) :].rstrip("/"))
        for each in outside
        if each.device == mount.device and (mount.root + "/").startswith(each.root.rstrip("/") + "/")
    ]
    return [path or "/" for _, path in sorted(shown, reverse=True)]
