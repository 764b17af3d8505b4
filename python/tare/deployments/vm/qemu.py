"""What is in force around a virtual machine, as reported by QEMU's monitor and the host's kernel."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tare.deployments.mounts import covering, mountinfo_of, parse_mountinfo
from tare.sites import Host

_CALL_S = 30.0
_CACHE_MODES = {
    (True, True, False): "none",
    (True, False, False): "writeback",
    (False, False, False): "writethrough",
    (False, True, False): "directsync",
    (True, False, True): "unsafe",
}
"""(cache.writeback, cache.direct, cache.no-flush) → cache mode (qemu(1), -drive cache=)."""


def monitor(host: Host, scratch: str, command: str) -> Any:
    """Run a command of QEMU's machine protocol that changes nothing, and return the answer."""
    argv = ["python3", "-I", "-S", f"{scratch}/line.py", "qmp", f"{scratch}/qmp", f"{_CALL_S:g}", command]
    return json.loads(host.run(argv, timeout_s=2 * _CALL_S).stdout)


def cpu_threads(host: Host, scratch: str) -> tuple[int, ...]:
    """Thread IDs of the virtual CPUs, in the order of the CPUs."""
    cpus = monitor(host, scratch, "query-cpus-fast")
    return tuple(int(cpu["thread-id"]) for cpu in sorted(cpus, key=lambda cpu: int(cpu["cpu-index"])))


def cpus_of(host: Host, pid: int, threads: Iterable[int]) -> list[str | None]:
    """CPU list that each thread may use; `None` for a thread that cannot be read."""
    allowed: list[str | None] = []
    for thread in threads:
        text = (host.read(f"/proc/{pid}/task/{thread}/status") or b"").decode()
        lines = [line.split(":", 1)[1].strip() for line in text.splitlines() if "Cpus_allowed_list" in line]
        allowed.append(lines[0] if lines else None)
    return allowed


def disk_cache(host: Host, scratch: str, serials: Sequence[str]) -> str | None:
    """QEMU's cache mode of these disks; `None` if there are no such disks or their modes differ."""
    return cache_mode(monitor(host, scratch, "query-block"), serials)


def cache_mode(devices: Sequence[Mapping[str, Any]], serials: Sequence[str]) -> str | None:
    """Cache mode of these disks in QEMU's answer to `query-block`; `None` as in `disk_cache`."""
    caches = [each["inserted"]["cache"] for each in devices if each.get("device") in serials and "inserted" in each]
    modes = {_CACHE_MODES.get((each["writeback"], each["direct"], each["no-flush"])) for each in caches}
    return modes.pop() if len(modes) == 1 else None


def disk_aio(host: Host, pid: int) -> str | None:
    """Interface through which QEMU accesses data disks; the image's disk is always read by threads.

    The kernel maps a ring named `[aio]` for io_setup(2) and opens one for io_uring_setup(2); QEMU calls neither
    unless a disk asks for it.
    """
    maps = host.read(f"/proc/{pid}/maps")
    if maps is None:
        return None
    if b"/[aio]" in maps:
        return "native"
    opened = _open(host, pid)
    if not opened:
        return None
    return "io_uring" if any("io_uring" in path for path in opened) else "threads"


def below(host: Host, pid: int, files: Mapping[str, str]) -> dict[str, str]:
    """Target → "fstype device" of the host's file system that holds the disk's file, if QEMU has the file open.

    `files`: target → path of the file.
    """
    listed = _open(host, pid)
    mounts = parse_mountinfo(mountinfo_of(host, pid))
    disks_below = {}
    for target, given in files.items():
        path = host.run(["realpath", "--", given], timeout_s=_CALL_S).text.rstrip("\n")
        mount = covering(mounts, path) if path in listed else None
        if mount is not None:
            disks_below[target] = f"{mount.fstype} {mount.device}"
    return disks_below


def _open(host: Host, pid: int) -> list[str]:
    return list(host.links([f"/proc/{pid}/fd"]).values())
