"""How a task in a virtual machine ended, as its machine tells at once; QEMU ends some seconds later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tare.sites import Host


@dataclass(frozen=True)
class DiskRoom:
    """What a file system had left for a user, and how large it is."""

    free_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class GuestEnd:
    """`code`: negative for a signal. `oom_kills`: how often the machine's kernel had killed for want of memory.

    `rooms`: the task's targets on disks of the machine → what these had left.
    """

    code: int
    oom_kills: int | None = None
    rooms: Mapping[str, DiskRoom] = field(default_factory=dict)


def end_told(host: Host, status: str) -> GuestEnd | None:
    """What stands in the file that the machine tells it in; `None` where nothing does, or not all of it yet."""
    raw = host.read(status)
    if not raw or not raw.endswith(b"\n"):
        return None
    told = json.loads(raw)
    rooms = {target: DiskRoom(room["free_bytes"], room["bytes"]) for target, room in told.get("rooms", {}).items()}
    return GuestEnd(int(told["code"]), told.get("oom_kills"), rooms)
