"""What is in force around a virtual machine, as QEMU's monitor and the host's kernel tell of its process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tare.deployments.mounts import covering, parse_mountinfo
from tare.sites import Host

_CALL_S = 30.0
_CACHE_MODES = {
    (True, True, False): "none",
    (True, False, False): "writeback",
    (False, False, False): "writethrough",
    (False, True, False): "directsync",
    (True, False, True): "unsafe",
}
"""cache.writeback, cache.direct and cache.no-flush of each mode (qemu(1), -drive cache=)."""


def monitor(host: Host, scratch: str, command: str) -> Any:
    """The answer to a command of QEMU's machine protocol that changes nothing."""
    argv = ["python3", "-I", "-S", f"{scratch}/line.py", "qmp", f"{scratch}/qmp", f"{_CALL_S:g}", command]
    return json.loads(host.run(argv, timeout_s=2 * _CALL_S).stdout)


def cpu_threads(host: Host, scratch: str) -> tuple[int, ...]:
    """The threads of the virtual CPUs, in order."""
    cpus = monitor(host, scratch, "query-cpus-fast")
    return tuple(int(cpu["thread-id"]) for cpu in sorted(cpus, key=lambda cpu: int(cpu["cpu-index"])))


def cpus_of(host: Host, pid: int, threads: Iterable[int]) -> list[str | None]:
    """The CPUs that each thread may use."""
    allowed: list[str | None] = []
    for thread in threads:
        text = (host.read(f"/proc/{pid}/task/{thread}/status") or b"").decode()
        lines = [line.split(":", 1)[1].strip() for line in text.splitlines() if "Cpus_allowed_list" in line]
        allowed.append(lines[0] if lines else None)
    return allowed


def disk_cache(host: Host, scratch: str, serials: Sequence[str]) -> str | None:
    """The cache mode of these disks, in QEMU's words; `None` where they have none or not one alone."""
    return cache_mode(monitor(host, scratch, "query-block"), serials)


def cache_mode(devices: Sequence[Mapping[str, Any]], serials: Sequence[str]) -> str | None:
    """The same from QEMU's answer."""
    caches = [each["inserted"]["cache"] for each in devices if each.get("device") in serials and "inserted" in each]
    modes = {_CACHE_MODES.get((each["writeback"], each["direct"], each["no-flush"])) for each in caches}
    return modes.pop() if len(modes) == 1 else None


def disk_aio(host: Host, pid: int) -> str | None:
    """By which interface QEMU reads and writes disks with data; the image's is always read by threads.

    The kernel maps a ring named `[aio]` for io_setup(2) and opens one for io_uring_setup(2); QEMU makes neither
    where no disk asks for it.
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
    """Target → "fstype device" of the host's file system that the disk's file lies on, which QEMU has open.

    `files`: target → path of the file.
    """
    listed = _open(host, pid)
    mounts = parse_mountinfo((host.read(f"/proc/{pid}/mountinfo") or b"").decode())
    disks_below = {}
    for target, given in files.items():
        path = host.run(["realpath", "--", given], timeout_s=_CALL_S).text.rstrip("\n")
        mount = covering(mounts, path) if path in listed else None
        if mount is not None:
            disks_below[target] = f"{mount.fstype} {mount.device}"
    return disks_below


def _open(host: Host, pid: int) -> list[str]:
    argv = ["find", f"/proc/{pid}/fd", "-type", "l", "-printf", "%l\n"]
    return host.run(argv, timeout_s=_CALL_S, check=False).text.splitlines()
