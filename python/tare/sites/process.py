"""Processes identified by pid, start time and boot, so that a reused pid is never taken for another process."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tare.errors import RunFailed
from tare.sites import Host, Process
from tare.sites.read_ahead import fetched
from tare.sites.reading import last_line

_CALL_S = 10.0
_NONE_MATCHED = 1
"""Exit code of pgrep(1)."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_STATE, _FLAGS = 0, 6
_USER_TIME, _SYSTEM_TIME = 11, 12
_NICENESS = 16
_START_TIME = 19
_POLICY = 38
"""Fields of /proc/PID/stat counted from the one behind the command's bracket: 3, 9, 14, 15, 19, 22 and 41 of
proc_pid_stat(5)."""
_PF_EXITING = 0x4
"""Flag of include/linux/sched.h, set at the beginning of do_exit()."""
TICKS_PER_S = 100
"""USER_HZ: unit of times in /proc on every architecture that databases run on (time(7))."""


@dataclass(frozen=True)
class Stat:
    """The values of /proc/PID/stat that tare needs."""

    state: str
    started_ticks: int
    policy: int
    niceness: int
    cpu_s: float
    """User and system time of all its threads, in steps of 10 ms."""
    exiting: bool
    """Whether it is exiting: it may have released its mounts and memory, but is no zombie yet."""


def parse_stat(raw: bytes) -> Stat:
    """Parse /proc/PID/stat.

    The command may contain blanks and brackets, so fields begin behind the last bracket.
    """
    fields = raw[raw.rindex(b")") + 2 :].split()
    return Stat(
        state=fields[_STATE].decode(),
        started_ticks=int(fields[_START_TIME]),
        policy=int(fields[_POLICY]),
        niceness=int(fields[_NICENESS]),
        cpu_s=(int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / TICKS_PER_S,
        exiting=bool(int(fields[_FLAGS]) & _PF_EXITING),
    )


def boot_id(host: Host) -> str:
    """The kernel's ID of this boot; empty if it cannot be read."""
    return (host.read(BOOT_ID) or b"").decode().strip()


def identify(host: Host, pid: int) -> Process | None:
    """The process that has this pid now; `None` if there is none."""
    raw = host.read(f"/proc/{pid}/stat")
    return Process(pid, parse_stat(raw).started_ticks, boot_id(host)) if raw else None


def named(host: Host, names: Iterable[str]) -> dict[int, str]:
    """Running processes that have one of these names: pid → name. Raises `RunFailed` if they cannot be listed."""
    pattern = "|".join(re.escape(name) for name in names)
    done = host.run(["pgrep", "-l", "-x", pattern], timeout_s=_CALL_S, check=False)
    if done.code not in (0, _NONE_MATCHED):
        raise RunFailed(f"pgrep ended with {done.code} on {host.name}: {last_line(done)}")
    return {int(pid): name.strip() for pid, _, name in (line.partition(" ") for line in done.text.splitlines())}


def alive(host: Host, process: Process) -> bool:
    """Whether exactly this process still runs; a zombie does not."""
    file = f"/proc/{process.pid}/stat"
    seen = fetched(host, (file, BOOT_ID))
    raw = seen.read(file)
    if not raw:
        return False
    stat = parse_stat(raw)
    same = stat.started_ticks == process.started_ticks and boot_id(seen) == process.boot_id
    return same and stat.state not in "ZX"


def to_ident(process: Process) -> str:
    """Text form of a process in the ledger and in labels."""
    return f"{process.pid}:{process.started_ticks}:{process.boot_id}"


def from_ident(ident: str) -> Process:
    """Parse the text of `to_ident`; `ValueError` for anything else."""
    pid, started, boot = ident.split(":")
    return Process(int(pid), int(started), boot)
