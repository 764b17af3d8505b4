"""What lies around a program and is compared where both runs have it: older records and some deployments do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tare.record.observation import Observation


@dataclass(frozen=True)
class Surrounding:
    """A compared field of an `Observation`. `keys`: keys of its side in a study, any of which varies it.

    `nature`: its name in `BY_NATURE`, if deployments may differ in it.
    """

    key: str
    name: str
    keys: tuple[str, ...] = ()
    nature: str | None = None

    def values(self, seen: Observation) -> Iterator[Any]:
        """Yield the value in an observation, if it has one."""
        if (value := getattr(seen, self.key)) is not None:
            yield value


_SECCOMP = ("engine", "runtime", "confinement.seccomp", "confinement.no_new_privileges")
_SERVER = ("image", "database")
_DISK = (*_SECCOMP, *_SERVER, "settings.innodb_use_native_aio", "settings.io_method", "settings.io_uring")
_PAGES = (*_SERVER, "limits.memlock", "settings.huge_pages", "settings.large_pages", "settings.memlock")
SURROUNDINGS: tuple[Surrounding, ...] = (
    Surrounding("shm_bytes", "size of /dev/shm", ("limits.shm", "limits.memory"), "shm"),
    Surrounding("swap_limit", "swap limit", ("limits.swap", "limits.memory"), "swap"),
    Surrounding("mems_allowed", "NUMA nodes of its memory", ("limits.mems",), "mems"),
    Surrounding("memory_policy", "NUMA policy of its memory", _SERVER),
    Surrounding("pids_limit", "limit of processes", ("limits.pids", "engine"), "pids"),
    Surrounding("security_label", "label of AppArmor or SELinux", ("engine", "runtime"), "label"),
    Surrounding("seccomp_filters", "number of seccomp filters", _SECCOMP, "seccomp"),
    Surrounding("seccomp_digest", "rules of the seccomp filter", _SECCOMP, "filter"),
    Surrounding("seccomp_forbids", "calls that the seccomp filter forbids", _SECCOMP, "filter"),
    Surrounding("disk_interface", "interface to disks", _DISK, "seccomp"),
    Surrounding("huge_pages", "explicit huge pages held", _PAGES),
    Surrounding("locked_memory", "locked memory", _PAGES),
    Surrounding("swappiness", "swappiness", ("cgroup",), "group"),
    Surrounding("hugetlb_limit", "limit of explicit huge pages", ("cgroup",), "group"),
    Surrounding("io_weight", "weight of disk operations", ("cgroup",), "group"),
    Surrounding("log_driver", "log driver", ("log_driver", "engine")),
)
