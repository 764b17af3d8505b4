"""Faults of a real study on a test host: its parts by name, its engine, its data, its network."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from tools.chaos.faults import FAULTS, Fault, a_while, another_user, calls_fail, cut_power, exhaust, fill, stop_s
from tools.chaos.processes import PARTS, text
from tools.chaos.session import Session

SETTINGS = (("--userland-proxy=false",), ("--live-restore",), ("--log-level=error",))
_ENGINE_ENDS_S, _BACK_S = 60.0, 30.0
_ONLY_ON_FAKES = frozenset({another_user, cut_power})
"""Real studies of a user who is not root need more than an engine, which `tools/rootless.py` tries. An engine's own
files are on no disk whose power can be cut here."""


def kill(part: str) -> Fault:
    """SIGKILL of a part of the run or of its engine; of an engine's own daemons: it is started again."""

    def fault(session: Session) -> bool:
        pids = session.part(part)
        if not pids:
            return False
        struck = session.signal([session.chance.choice(pids)], signal.SIGKILL)
        if part == "dockerd":
            session.ground.start_engine()
        if part == "containerd":
            _await_containerd(session)
        return struck

    return fault


def _await_containerd(session: Session) -> None:
    """The engine restarts it by itself."""
    end = time.monotonic() + _BACK_S
    while not session.part("containerd") and time.monotonic() < end:
        time.sleep(0.2)


def stop(part: str) -> Fault:
    """SIGSTOP of a part."""

    def fault(session: Session) -> bool:
        pids = session.part(part)
        return bool(pids) and session.halt([session.chance.choice(pids)], stop_s(session))

    return fault


def restart(*, other_settings: bool) -> Fault:
    """SIGTERM of the engine, which ends its containers, and a start; other settings last for the session."""

    def fault(session: Session) -> bool:
        options = session.chance.choice(SETTINGS) if other_settings else ()
        session.signal(session.part("dockerd"), signal.SIGTERM)
        end = time.monotonic() + _ENGINE_ENDS_S
        while session.part("dockerd") and time.monotonic() < end:
            time.sleep(0.1)
        session.ground.start_engine(options)
        return True

    return fault


def no_room_for_data(session: Session) -> bool:
    """The file system of the server's data is full, where it is not the home's."""
    servers = session.part("server")
    if not servers:
        return False
    for directory in ("/var/lib/mysql", "/var/lib/redis", "/var/lib/cassandra", "/data"):
        place = Path(f"/proc/{servers[0]}/root{directory}")
        try:
            room = os.statvfs(place)
            if room.f_blocks * room.f_frsize > 2 << 30:
                continue
            with (place / "filler").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, room.f_bfree * room.f_frsize)
        except OSError:
            continue
        a_while(session)
        (place / "filler").unlink(missing_ok=True)
        return True
    return False


def part_out_of_memory(part: str) -> Fault:
    """The control group of a part is out of memory."""

    def fault(session: Session) -> bool:
        pids = session.part(part)
        group = None if not pids else memory_group(pids[0])
        return group is not None and exhaust(group)

    return fault


def memory_group(pid: int) -> Path | None:
    """The directory of its memory group, if that is one of a run of tare's."""
    for line in text(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if "/tare/" in path and controllers in ("memory", ""):
            found = Path("/sys/fs/cgroup", controllers) / path.lstrip("/")
            if (found / "memory.stat").exists():
                return found
    return None


def bridge_down(session: Session) -> bool:
    """A bridge of the engine's, or of a run's, is taken down and up again."""
    shown = session.ground.inside(["ip", "-o", "link", "show", "type", "bridge", "up"], check=False).stdout
    bridges = [name for name in re.findall(r"^\d+: ([^:@]+)", shown, re.MULTILINE) if "NO-CARRIER" not in name]
    if not bridges or not session.part("server"):
        return False
    bridge = session.chance.choice(bridges)
    if session.ground.inside(["ip", "link", "set", bridge, "down"], check=False).returncode != 0:
        return False  # gone with its run
    a_while(session)
    session.ground.inside(["ip", "link", "set", bridge, "up"], check=False)
    return True


def wire_removed(session: Session) -> bool:
    """A veth of a container, or the tap of a virtual machine, is gone for good."""
    wires = list[str]()
    for kind in ("veth", "tun"):
        shown = session.ground.inside(["ip", "-o", "link", "show", "type", kind], check=False).stdout
        wires += re.findall(r"^\d+: ([^:@]+)", shown, re.MULTILINE)
    wires = [wire for wire in wires if wire not in ("mgmt0", "wire0")]
    if not wires:
        return False
    return (
        session.ground.inside(["ip", "link", "delete", session.chance.choice(wires)], check=False).returncode == 0
    )


REAL: Mapping[str, Fault] = {
    **{name: fault for name, fault in FAULTS.items() if fault not in _ONLY_ON_FAKES},
    **{f"kill -9 {part}": kill(part) for part in PARTS},
    **{f"SIGSTOP of {part}": stop(part) for part in PARTS},
    "engine restarted": restart(other_settings=False),
    "engine restarted with other settings": restart(other_settings=True),
    "no room for home and data": fill("home"),
    "no room for the data": no_room_for_data,
    "EIO in the server's writes": calls_fail("server", "pwrite64,fsync,fdatasync", "EIO"),
    "open fails in the server": calls_fail("server", "openat", "EMFILE"),
    "fork fails in the server": calls_fail("server", "clone,clone3,fork,vfork", "EAGAIN"),
    "out of memory: server": part_out_of_memory("server"),
    "out of memory: client": part_out_of_memory("client"),
    "bridge down": bridge_down,
    "wire removed": wire_removed,
}
"""On real studies."""
