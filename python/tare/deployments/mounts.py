"""/proc/PID/mountinfo (proc_pid_mountinfo(5)) as values, and the file system that a directory lies on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tare.errors import EnvironmentLacks
from tare.sites import Host

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One mount. `root`: the part of its file system that is mounted; `device`: "major:minor"."""

    device: str
    root: str
    target: str
    options: tuple[str, ...]
    fstype: str
    source: str
    super_options: tuple[str, ...]


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Mounts in the order of the file: a later mount on the same target covers an earlier one."""
    return tuple(_parse_line(line) for line in text.split("\n") if line)


def describe_mount(mount: Mount) -> str:
    """Describe a mount as `ext4 254:0`.

    A network file system also has the server's address: `nfs4 0:53 10.231.0.2`.
    """
    address = next((option.partition("=")[2] for option in mount.super_options if option.startswith("addr=")), "")
    return f"{mount.fstype} {mount.device} {address}".rstrip()


def covering(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    """The mount that `path` (absolute, without links) lies on."""
    best: Mount | None = None
    for mount in mounts:
        inside = path == mount.target or path.startswith(mount.target.rstrip("/") + "/")
        if inside and (best is None or len(mount.target) >= len(best.target)):
            best = mount
    return best


def below(mounts: tuple[Mount, ...], path: str) -> tuple[str, ...]:
    """Mount targets at or below `path`, in the order in which they can be unmounted."""
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


def mountinfo_of(host: Host, pid: int | str = "self") -> str:
    """Mounts of a process as the kernel prints them; empty if it has ended.

    Any user's mount is in it, and its path may hold any bytes.
    """
    return (host.read(f"/proc/{pid}/mountinfo") or b"").decode(errors="replace")


def mount_under(host: Host, path: str) -> Mount:
    """The mount that a directory of the host lies on."""
    real = host.run(["realpath", "--", path], timeout_s=_CALL_S).text.rstrip("\n")
    mount = covering(parse_mountinfo(mountinfo_of(host)), real)
    if mount is None:
        raise EnvironmentLacks(f"the kernel does not report the file system of {path}")
    return mount


def must_share_disk(host: Host, engines: str, ours: str) -> None:
    """Raise `EnvironmentLacks` if the engine's directory lies on another disk than tare's own."""
    theirs, own = mount_under(host, engines), mount_under(host, ours)
    # Subvolumes of one btrfs differ in device number but share the device.
    if theirs.device == own.device or (theirs.source == own.source and own.source.startswith("/dev/")):
        return
    there, here = (f"{each.fstype} on {each.source} ({each.device})" for each in (theirs, own))
    raise EnvironmentLacks(
        f"the engine's {engines} is on {there}, tare's {ours} on {here}: arms would use different disks",
        hint="set TARE_HOME to a directory of the engine's file system, or move the engine's data (`data-root`)",
    )


@dataclass(frozen=True)
class Place:
    """Path on the host that a mount of a process shows."""

    path: str
    mount: Mount


def place_on_host(host: Host, pid: int, target: str) -> Place | None:
    """The host directory that a process sees at `target`; `None` if no mount of the host shows it.

    The mounts are matched by device and root, and the directory must be the same inode.
    """
    inside, outside = (parse_mountinfo(mountinfo_of(host, who)) for who in (pid, "self"))
    mount = covering(inside, target)
    if mount is None or mount.target != target:
        return None
    for path in _paths_of(mount, outside):
        argv = ["stat", "-c", "%d:%i", "--", path, f"/proc/{pid}/root{target}"]
        done = host.run(argv, timeout_s=_CALL_S, check=False)
        if done.code == 0 and len(set(done.text.split())) == 1:
            return Place(path, mount)
    return None


def _paths_of(mount: Mount, outside: tuple[Mount, ...]) -> list[str]:
    """Paths at which mounts of the same file system would show it, the closest mount first."""
    shown = [
        (len(each.root), each.target.rstrip("/") + mount.root[len(each.root.rstrip("/")) :].rstrip("/"))
        for each in outside
        if each.device == mount.device and (mount.root + "/").startswith(each.root.rstrip("/") + "/")
    ]
    return [path or "/" for _, path in sorted(shown, reverse=True)]
