"""Processes named beyond doubt: pid, start time and boot, so that a recycled pid is never taken for another."""

from __future__ import annotations

from dataclasses import dataclass

from tare.sites import Host, Process
from tare.sites.read_ahead import fetched

BOOT_ID = "/proc/sys/kernel/random/boot_id"
_STATE, _FLAGS = 0, 6
_USER_TIME, _SYSTEM_TIME = 11, 12
_START_TIME = 19
_POLICY = 38
"""Fields of /proc/PID/stat counted from the one behind the command's bracket: 3, 9, 14, 15, 22 and 41 of
proc_pid_stat(5)."""
_PF_EXITING = 0x4
"""Of include/linux/sched.h: set at the beginning of do_exit()."""
TICKS_PER_S = 100
"""USER_HZ: what /proc counts in on every architecture that databases run on (time(7))."""


@dataclass(frozen=True)
class Stat:
    """What tare needs of /proc/PID/stat."""

    state: str
    started_ticks: int
    policy: int
    cpu_s: float
    """User and system time of all its threads, in steps of 10 ms."""
    exiting: bool
    """On its way out: it may have given back its mounts and memory, and is no zombie yet."""


def parse_stat(raw: bytes) -> Stat:
    """Parse /proc/PID/stat; the command may hold blanks and brackets, so the last bracket counts."""
    fields = raw[raw.rindex(b")") + 2 :].split()
    return Stat(
        state=fields[_STATE].decode(),
        started_ticks=int(fields[_START_TIME]),
        policy=int(fields[_POLICY]),
        cpu_s=(int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / TICKS_PER_S,
        exiting=bool(int(fields[_FLAGS]) & _PF_EXITING),
    )


def boot_id(host: Host) -> str:
    """The kernel's id of this boot; empty where there is none to read."""
    return (host.read(BOOT_ID) or b"").decode().strip()


def identify(host: Host, pid: int) -> Process | None:
    """The process that bears this pid now, `None` when there is none."""
    raw = host.read(f"/proc/{pid}/stat")
    return Process(pid, parse_stat(raw).started_ticks, boot_id(host)) if raw else None


def alive(host: Host, process: Process) -> bool:
    """Whether this very process still runs; one that only waits to be reaped does not."""
    file = f"/proc/{process.pid}/stat"
    seen = fetched(host, (file, BOOT_ID))
    raw = seen.read(file)
    if not raw:
        return False
    stat = parse_stat(raw)
    same = stat.started_ticks == process.started_ticks and boot_id(seen) == process.boot_id
    return same and stat.state not in "ZX"


def to_ident(process: Process) -> str:
    """The form in which a process stands in the ledger and in labels."""
    return f"{process.pid}:{process.started_ticks}:{process.boot_id}"


def from_ident(ident: str) -> Process:
    """The reverse of `to_ident`; `ValueError` for anything else."""
    pid, started, boot = ident.split(":")
    return Process(int(pid), int(started), boot)
