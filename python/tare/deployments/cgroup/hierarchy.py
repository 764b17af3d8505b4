"""The host's cgroup hierarchies (v1, hybrid and v2), and the values to write to them.

Paths of cgroups are relative to the root of their hierarchy ("tare/RUN/server"), without a leading slash. Sources:
Documentation/admin-guide/cgroup-v1/, cgroup-v2.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tare.deployments import Limits
from tare.deployments.defaults import CPU_PERIOD_US, cpu_quota_us, cpu_shares
from tare.deployments.disks import Read, disks
from tare.deployments.mounts import Mount, mountinfo_of, parse_mountinfo
from tare.errors import EnvironmentLacks
from tare.sites import Host

_NOT_CONTROLLERS = frozenset({"rw", "ro", "xattr", "clone_children", "noprefix", "release_agent"})
_V2_CONTROLLERS = ("cpu", "cpuset", "io", "memory", "pids")
_V2_READ = (*_V2_CONTROLLERS, "hugetlb")
_NESTED = "/container"
_CPUSET = ("cpuset.cpus", "cpuset.mems")


class CgroupKind(StrEnum):
    """The cgroup interface that holds the controllers."""

    V1 = "v1"
    HYBRID = "hybrid"
    """Controllers are in v1 hierarchies; beside them is a v2 hierarchy without controllers."""
    V2 = "v2"


@dataclass(frozen=True)
class Hierarchy:
    """One mounted hierarchy. `controllers` is empty for v2, whose root lists them in cgroup.controllers."""

    mount: str
    controllers: tuple[str, ...]
    unified: bool


@dataclass(frozen=True)
class Cgroups:
    """All hierarchies of a host."""

    kind: CgroupKind
    hierarchies: tuple[Hierarchy, ...]

    def directories(self, path: str) -> tuple[str, ...]:
        """Directory of the cgroup `path` in each hierarchy. Engines make all of them, so tare does too."""
        return tuple(f"{hierarchy.mount}/{path}" for hierarchy in self.hierarchies)

    def mount_of(self, controller: str) -> str | None:
        """Mount point of the hierarchy that holds a controller; `None` if there is none."""
        for hierarchy in self.hierarchies:
            unified = hierarchy.unified and self.kind is CgroupKind.V2
            if controller in hierarchy.controllers or (unified and controller in _V2_READ):
                return hierarchy.mount
        return None

    def procs_files(self, proc_cgroup: str) -> tuple[str, ...]:
        """The cgroup.procs files through which a process joins the cgroups listed in a /proc/PID/cgroup."""
        paths = parse_proc_cgroup(proc_cgroup)
        files = []
        for hierarchy in self.hierarchies:
            wanted = set(hierarchy.controllers) or {""}
            same = [path for names, path in paths.items() if set(names.split(",")) == wanted]
            files += [f"{hierarchy.mount}/{path.strip('/')}/cgroup.procs" for path in same]
        return tuple(files)


@dataclass(frozen=True)
class Write:
    """One value to write to one file of a cgroup."""

    path: str
    value: str


def parse_cgroups(mountinfo: str) -> Cgroups:
    """Find the hierarchies in /proc/self/mountinfo. Raises `EnvironmentLacks` if there are none."""
    by_controller: dict[str, Hierarchy] = {}
    for mount in parse_mountinfo(mountinfo):
        if mount.fstype in ("cgroup", "cgroup2") and mount.root == "/" and mount.device not in by_controller:
            by_controller[mount.device] = _hierarchy(mount)
    hierarchies = tuple(by_controller.values())
    if not hierarchies:
        raise EnvironmentLacks(
            "no cgroup hierarchy is mounted on this host", hint="mount /sys/fs/cgroup, see cgroups(7)"
        )
    if all(hierarchy.unified for hierarchy in hierarchies):
        kind = CgroupKind.V2
    else:
        kind = CgroupKind.HYBRID if any(hierarchy.unified for hierarchy in hierarchies) else CgroupKind.V1
    return Cgroups(kind, hierarchies)


def cgroups_of(host: Host) -> Cgroups:
    """Find the hierarchies of a host. Raises `EnvironmentLacks` if there are none."""
    return parse_cgroups(mountinfo_of(host))


def parse_proc_cgroup(text: str) -> dict[str, str]:
    """Parse /proc/PID/cgroup: controllers (comma-separated, empty for v2) → path as printed."""
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    return {controllers: path for _, controllers, path in lines}


def limited(path: str) -> str:
    """The cgroup that holds a task's limits: crun puts a program into `container` below the scope of systemd's."""
    return path.removesuffix(_NESTED) if path.endswith(f".scope{_NESTED}") else path


def parent_writes(cgroups: Cgroups, path: str, read: Read) -> Iterator[Write]:
    """Writes needed from the root down so that cgroups below `path` can be used; they restrict nothing."""
    ancestors = _ancestors(path)
    if cgroups.kind is CgroupKind.V2:
        for directory in (
            cgroups.hierarchies[0].mount,
            *(place for ancestor in ancestors for place in cgroups.directories(ancestor)),
        ):
            have = (read(f"{directory}/cgroup.controllers") or b"").decode(errors="replace").split()
            if wanted := " ".join(f"+{name}" for name in _V2_CONTROLLERS if name in have):
                yield Write(f"{directory}/cgroup.subtree_control", wanted)
        return
    if (mount := cgroups.mount_of("cpuset")) is not None:
        for ancestor in ancestors:
            yield from _inherit_cpuset(f"{mount}/{ancestor}", read)


def cpuset_files(cgroups: Cgroups, path: str) -> tuple[str, ...]:
    """Files of v1 that are read before the cgroups down to `path` can be used, as far as known in advance."""
    mount = None if cgroups.kind is CgroupKind.V2 else cgroups.mount_of("cpuset")
    places = () if mount is None else (mount, *(f"{mount}/{each}" for each in _ancestors(path)))
    return tuple(f"{place}/{name}" for place in places for name in _CPUSET)


def leaf_writes(cgroups: Cgroups, path: str, limits: Limits, read: Read) -> Iterator[Write]:
    """Writes that set the limits of one task.

    Without a requested weight, the kernel's default stays, as with engines.
    """
    yield from weight_writes(cgroups, path, limits)
    if cgroups.kind is CgroupKind.V2:
        yield from _limits_v2(f"{cgroups.hierarchies[0].mount}/{path}", limits, read)
        return
    if (mount := cgroups.mount_of("cpuset")) is not None:
        yield from _inherit_cpuset(f"{mount}/{path}", read)
        if limits.cpus is not None:
            yield Write(f"{mount}/{path}/cpuset.cpus", limits.cpus)
    if limits.mems is not None:
        yield Write(f"{_required_mount(cgroups, 'cpuset')}/{path}/cpuset.mems", limits.mems)
    yield from _limits_v1(cgroups, path, limits, read)


def weight_writes(cgroups: Cgroups, path: str, limits: Limits) -> Iterator[Write]:
    """Write that sets the CPU weight.

    tare writes it itself, because engines convert v1 weights to v2 by formulas that changed.
    """
    if limits.cpu_weight is None:
        return
    mount = _required_mount(cgroups, "cpu")
    if cgroups.kind is CgroupKind.V2:
        yield Write(f"{mount}/{path}/cpu.weight", str(limits.cpu_weight))
    else:
        yield Write(f"{mount}/{path}/cpu.shares", str(cpu_shares(limits.cpu_weight)))


def _limits_v1(cgroups: Cgroups, path: str, limits: Limits, read: Read) -> Iterator[Write]:
    quota = cpu_quota_us(limits)
    if quota is not None:
        directory = f"{_required_mount(cgroups, 'cpu')}/{path}"
        yield Write(f"{directory}/cpu.cfs_period_us", str(CPU_PERIOD_US))
        yield Write(f"{directory}/cpu.cfs_quota_us", str(quota))
    if limits.memory_bytes is not None:
        directory = f"{_required_mount(cgroups, 'memory')}/{path}"
        yield Write(f"{directory}/memory.limit_in_bytes", str(limits.memory_bytes))
        if limits.swap_bytes or read(f"{directory}/memory.memsw.limit_in_bytes") is not None:
            # absent without swap accounting: then there is nothing to set, unless swap is asked for
            yield Write(f"{directory}/memory.memsw.limit_in_bytes", str(limits.memory_and_swap_bytes))
    if limits.pids is not None:
        yield Write(f"{_required_mount(cgroups, 'pids')}/{path}/pids.max", str(limits.pids))
    if limits.disk_iops is not None:
        directory = f"{_required_mount(cgroups, 'blkio')}/{path}"
        for disk in disks(read):
            for way in ("read", "write"):
                value = f"{disk.device} {limits.disk_iops}"
                yield Write(f"{directory}/blkio.throttle.{way}_iops_device", value)


def _limits_v2(directory: str, limits: Limits, read: Read) -> Iterator[Write]:
    quota = cpu_quota_us(limits)
    if limits.cpus is not None:
        yield Write(f"{directory}/cpuset.cpus", limits.cpus)
    if quota is not None:
        yield Write(f"{directory}/cpu.max", f"{quota} {CPU_PERIOD_US}")
    if limits.memory_bytes is not None:
        yield Write(f"{directory}/memory.max", str(limits.memory_bytes))
        yield Write(f"{directory}/memory.swap.max", str(limits.swap_bytes or 0))
    if limits.mems is not None:
        yield Write(f"{directory}/cpuset.mems", limits.mems)
    if limits.pids is not None:
        yield Write(f"{directory}/pids.max", str(limits.pids))
    if limits.disk_iops is not None:
        for disk in disks(read):
            value = f"{disk.device} riops={limits.disk_iops} wiops={limits.disk_iops}"
            yield Write(f"{directory}/io.max", value)


def _inherit_cpuset(directory: str, read: Read) -> Iterator[Write]:
    """A new v1 cpuset has neither CPUs nor memory nodes, and no task can join it: copy both from the parent."""
    parent = directory.rsplit("/", 1)[0]
    for name in _CPUSET:
        if not (read(f"{directory}/{name}") or b"").strip():
            inherited = (read(f"{parent}/{name}") or b"").decode(errors="replace").strip()
            yield Write(f"{directory}/{name}", inherited)


def _ancestors(path: str) -> tuple[str, ...]:
    """`a/b/c` → `a`, `a/b`, `a/b/c`."""
    parts = path.strip("/").split("/")
    return tuple("/".join(parts[: index + 1]) for index in range(len(parts)))


def _required_mount(cgroups: Cgroups, controller: str) -> str:
    mount = cgroups.mount_of(controller)
    if mount is None:
        raise EnvironmentLacks(
            f"this host's kernel offers no {controller} cgroup controller", hint="see /proc/cgroups"
        )
    return mount


def _hierarchy(mount: Mount) -> Hierarchy:
    if mount.fstype == "cgroup2":
        return Hierarchy(mount.target, (), unified=True)
    names = [option for option in mount.super_options if option.partition("=")[0] not in _NOT_CONTROLLERS]
    return Hierarchy(mount.target, tuple(names), unified=False)
