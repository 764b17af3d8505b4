"""The host's disks, on each of which a task's operations can be limited."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tare.errors import EnvironmentLacks

_STACKED = re.compile(r"(loop|ram|zram|dm-|md|sr|fd)\d")
"""Devices in memory, and devices stacked on others, whose operations are counted there."""

Read = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Disk:
    """A whole disk. `device`: "major:minor"."""

    name: str
    device: str

    @property
    def path(self) -> str:
        """Path of the device file."""
        return f"/dev/{self.name}"


def disks(read: Read) -> tuple[Disk, ...]:
    """All whole disks listed in /proc/partitions, without partitions.

    Raises `EnvironmentLacks` if there are none.
    """
    rows = [line.split() for line in (read("/proc/partitions") or b"").decode().splitlines()[1:] if line.strip()]
    devices = tuple(
        Disk(name, f"{major}:{minor}")
        for major, minor, _, name in rows
        if not _STACKED.match(name) and read(f"/sys/block/{name}/dev") is not None
    )
    if not devices:
        raise EnvironmentLacks("no disk of this host can be limited", hint="leave `disk_iops` out of the limits")
    return devices


def iops_in_force(throttle: str) -> int | None:
    """Lowest limit in a group's file: v1 "MAJOR:MINOR N", v2 "MAJOR:MINOR rbps=… riops=N …".

    `None`: not limited.
    """
    limits = re.findall(r"(?:\d+:\d+ |[rw]iops=)(\d+)(?!\S)", throttle)
    return min((int(each) for each in limits), default=None)
