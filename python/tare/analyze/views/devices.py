"""Which block devices a sum may hold: /proc/diskstats counts a byte for each device that it passes."""

from __future__ import annotations

import re
from collections.abc import Collection

_STACKED = re.compile(r"(dm-|md|loop|ram|zram|bcache|drbd|zd)\d")
"""Of device mapper, RAID, files, memory, caches and volumes of ZFS: what they write is others' too, or nobody's."""


def whole(names: Collection[str]) -> frozenset[str]:
    """Without partitions, which iostat and sar do not print: `sda1` beside `sda`, `nvme0n1p1` beside `nvme0n1`."""
    return frozenset(name for name in names if not any(_is_part(name, device) for device in names))


def lowest(names: Collection[str]) -> frozenset[str]:
    """Those among them that stand on no other, as far as names tell; all whole ones where each does."""
    devices = whole(names)
    return frozenset(name for name in devices if not _STACKED.match(name)) or devices


def _is_part(name: str, device: str) -> bool:
    """By block/partitions/core.c of the kernel: behind a device that ends in a digit a `p` and the number."""
    rest = name.removeprefix(device)
    return rest != name and re.fullmatch(r"p\d+" if device[-1:].isdecimal() else r"\d+", rest) is not None
