"""What was in force around server and client while they ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from tare.record.made_by import ContainerdFacts, GuestFacts, PodFacts

Side = Literal["sut", "client"]


@final
@dataclass(frozen=True, slots=True)
class Observation:
    """What is in force around a program, as read from the kernel and never copied from the request.

    `null`, or empty: it could not be read, there is none, or the record is older than the field.
    """

    cgroups: Mapping[str, str] = field(default_factory=dict)
    """Hierarchy → control group, as /proc/PID/cgroup prints them."""
    cpu_weight: int | None = None
    """cgroup v2's `cpu.weight` or v1's `cpu.shares`."""
    cpus_allowed: str | None = None
    """CPU list."""
    cpu_quota: float | None = None
    """Limit of CPU time, in CPUs; `null`: none."""
    memory_bytes: int | None = None
    """Limit; `null`: none."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """Lines of `/proc/PID/limits`: name → "soft hard"."""
    seccomp: str | None = None
    """Mode from `/proc/PID/status`."""
    speculation: Mapping[str, str] = field(default_factory=dict)
    """Speculation controls from `/proc/PID/status`."""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """Kind → inode of `/proc/PID/ns/*`."""
    binary_digest: str | None = None
    """sha256 of the program's file."""
    scheduler: str | None = None
    """Scheduling policy, with the niceness if it is not 0: `other`, `batch, nice 15`."""
    oom_score_adj: int | None = None
    """From the kernel."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Mount point of each of the run's directories inside → "fstype device"; for a network file system with the
    server's address, for a virtual disk where its file lies."""
    disk_iops: int | None = None
    """Reads or writes per second on a disk, the lowest limit; `null`: none."""
    environment: Mapping[str, str] | None = None
    """The program's variables from `/proc/PID/environ`: name → value; `null`: not readable, or overwritten by the
    program, as Redis does."""
    capabilities: str | None = None
    """`CapBnd` of `/proc/PID/status`, in hexadecimal: what the program and its children can ever have."""
    no_new_privileges: str | None = None
    """`NoNewPrivs` of `/proc/PID/status`."""
    id_map: str | None = None
    """Users of its namespace, of `/proc/PID/uid_map`: `INSIDE:OUTSIDE:COUNT`, joined by commas."""
    root_mount: str | None = None
    """"fstype major:minor" of its root: the kernel's overlay, fuse-overlayfs, or the host's file system."""
    containerd: ContainerdFacts | None = None
    """For a container that containerd itself made; else `null`."""
    pod: PodFacts | None = None
    """For a container in a pod; else `null`."""
    shm_bytes: int | None = None
    """Size of its `/dev/shm`."""
    network_settings: Mapping[str, str] | None = None
    """Sysctls of its network namespace, MTU of loopback, MTU, queue and (if `ethtool` is installed) offloads of the
    default route's interface, name servers: name → value; `null`: not readable, as without root or in a virtual
    machine."""
    swap_limit: str | None = None
    """Swap that its group may use beside its memory, in bytes, or `max`; `null`: the kernel does not count it."""
    mems_allowed: str | None = None
    """NUMA nodes of its memory."""
    memory_policy: str | None = None
    """NUMA policy of its memory, as `/proc/PID/numa_maps` has it; `null`: one node, or unknown."""
    pids_limit: str | None = None
    """Most processes and threads of its group, or `max`."""
    security_label: str | None = None
    """Label of AppArmor, or of SELinux without its level, from `/proc/PID/attr/current`."""
    seccomp_filters: str | None = None
    """Number of its filters of system calls, from `/proc/PID/status`."""
    seccomp_digest: str | None = None
    """sha256 of the filter's rules, as the engine gave them to the runtime; `null` without a filter, or unknown."""
    seccomp_forbids: str | None = None
    """Calls of databases that the filter forbids, with blanks between, or `none`; `null`: its rules are unknown."""
    disk_interface: str | None = None
    """`io_uring`, `libaio` or `neither`, by the program's open files and mappings."""
    links_io_uring: str | None = None
    """Whether the program links liburing, or uses io_uring without it: `yes` or `no`."""
    huge_pages: str | None = None
    """Whether it holds explicit huge pages: `some` or `none`."""
    locked_memory: str | None = None
    """Whether it has locked memory: `some` or `none`."""
    swappiness: str | None = None
    """`memory.swappiness` of its group, which only control groups v1 have."""
    hugetlb_limit: str | None = None
    """Limit of its group on explicit huge pages of 2 MiB, in bytes, or `max`."""
    io_weight: str | None = None
    """Weight of its group in disk operations."""
    log_driver: str | None = None
    """Log driver of its container, by the engine's word; `null` without an engine."""
    guest: GuestFacts | None = None
    """For a virtual machine, or a container in one; else `null`."""


class Parity(BaseModel):
    """What was in force around both sides, read while both ran."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sut: Observation | None = None
    """What is in force around the SUT, or its first node; `null` if nobody could read it."""
    client: Observation | None = None
    """What is in force around the client; `null` for a program that is itself the SUT."""
    sut_after: Observation | None = None
    """That of the SUT after the measure phase; absent if nobody looked, as for a program that has ended."""

    def of(self, side: str) -> Observation | None:
        """Return what was in force around one side."""
        return self.sut if side == "sut" else self.client

    def with_sut(self, seen: Observation | None) -> Parity:
        """Return the same with this around the SUT."""
        return self.model_copy(update={"sut": seen})

    @property
    def lacks_after(self) -> bool:
        """Whether the SUT was looked at after the measure phase, and could not be read."""
        return self.sut_after is None and "sut_after" in self.model_fields_set

    @model_serializer(mode="wrap")
    def _as_read(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tree: dict[str, Any] = whole(self)
        if "sut_after" not in self.model_fields_set:
            tree.pop("sut_after", None)
        return tree
