"""Resource limits (getrlimit(2)): all are set, to the same values in every deployment.

A task inherits limits that are not set: a container from its engine's daemon, a bare one from the user's shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.deployments import Limits
from tare.deployments.observe import parse_limits, parse_status
from tare.sites import Host

OWN_STATUS = "/proc/self/status"
"""Status of the process that acts on the host for tare."""
UNLIMITED = -1
_STACK_BYTES = 8 << 20
_MSGQUEUE_BYTES = 819_200
_CAP_SYS_RESOURCE = 24

_KERNEL_NAMES = {
    "core": "Max core file size",
    "cpu": "Max cpu time",
    "data": "Max data size",
    "fsize": "Max file size",
    "locks": "Max file locks",
    "memlock": "Max locked memory",
    "msgqueue": "Max msgqueue size",
    "nice": "Max nice priority",
    "nofile": "Max open files",
    "nproc": "Max processes",
    "rss": "Max resident set",
    "rtprio": "Max realtime priority",
    "sigpending": "Max pending signals",
    "stack": "Max stack size",
}


@dataclass(frozen=True)
class Rlimit:
    """A resource limit; -1: unlimited."""

    soft: int
    hard: int


def rlimits(limits: Limits, ceilings: Mapping[str, int]) -> Mapping[str, Rlimit]:
    """Every limit under the engine's name, none above its ceiling."""
    unlimited = Rlimit(UNLIMITED, UNLIMITED)
    nproc = UNLIMITED if limits.nproc is None else limits.nproc
    memlock = UNLIMITED if limits.memlock_bytes is None else limits.memlock_bytes
    wanted = {
        "core": Rlimit(0, 0),
        "cpu": unlimited,
        "data": unlimited,
        "fsize": unlimited,
        "locks": unlimited,
        "memlock": Rlimit(memlock, memlock),
        "msgqueue": Rlimit(_MSGQUEUE_BYTES, _MSGQUEUE_BYTES),
        "nice": Rlimit(0, 0),
        "nofile": Rlimit(limits.nofile, limits.nofile),
        "nproc": Rlimit(nproc, nproc),
        "rss": unlimited,
        "rtprio": Rlimit(0, 0),
        "sigpending": unlimited,
        "stack": Rlimit(_STACK_BYTES, UNLIMITED),
    }
    return {
        name: Rlimit(_capped(limit.soft, ceilings.get(name)), _capped(limit.hard, ceilings.get(name)))
        for name, limit in wanted.items()
    }


def ceilings(host: Host) -> Mapping[str, int]:
    """Limits that even root cannot exceed without CAP_SYS_RESOURCE, as on many machines; empty with the capability.

    The engine's daemon is assumed to have the same ceilings. Podman lowers its own number of processes to the
    kernel's `pid_max`, which no process count can exceed anyway.
    """
    status = parse_status((host.read(OWN_STATUS) or b"").decode())
    if int(status.get("CapEff", "0"), 16) >> _CAP_SYS_RESOURCE & 1:
        return {}
    limits = process_ceilings(host, "self")
    if pid_max := (host.read("/proc/sys/kernel/pid_max") or b"").strip():
        limits["nproc"] = min(limits.get("nproc", int(pid_max)), int(pid_max))
    return limits


def process_ceilings(host: Host, pid: int | str) -> dict[str, int]:
    """Hard limits of a process, which it cannot exceed for its children; unlimited ones are left out."""
    own = parse_limits((host.read(f"/proc/{pid}/limits") or b"").decode())
    hard = {name: own[kernel].split()[1] for name, kernel in _KERNEL_NAMES.items() if kernel in own}
    return {name: int(value) for name, value in hard.items() if value != "unlimited"}


def _capped(wanted: int, ceiling: int | None) -> int:
    if ceiling is None:
        return wanted
    return ceiling if wanted == UNLIMITED else min(wanted, ceiling)
