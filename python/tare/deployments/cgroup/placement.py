"""Control groups of a run and its tasks: how a host makes them, and how a running task moves to other CPUs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tare.deployments import Instance, Limits, Task
from tare.deployments.cgroup.hierarchy import (
    Cgroups,
    Write,
    cgroups_of,
    cpuset_files,
    leaf_writes,
    limited,
    parent_writes,
    parse_proc_cgroup,
    weight_writes,
)
from tare.deployments.cgroup.removal import clear, prune, stop_units
from tare.deployments.defaults import cpu_quota_us
from tare.deployments.disks import Read, disks
from tare.deployments.observe import parse_status
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.read_ahead import fetched
from tare.sites.reading import cpu_list
from tare.study.values import CgroupPlace

if TYPE_CHECKING:
    from docker import DockerClient


_CALL_S = 30.0
_MOVE = 'for file in {procs}; do [ ! -e "$file" ] || echo "$1" >"$file" || exit; done'


class Placement(Protocol):
    """Makes and removes cgroups on one host."""

    @property
    def cgroups(self) -> Cgroups:
        """The host's hierarchies."""
        ...

    def engine_parent(self, parent: str) -> str:
        """Value that an engine needs as the cgroup parent of its containers."""
        ...

    def path(self, parent: str) -> str:
        """Path of the parent below the root of each hierarchy."""
        ...

    def prefix(self, task: Task) -> tuple[str, ...]:
        """Words to put before a bare task's command."""
        ...

    def make(self, task: Task) -> tuple[str, ...]:
        """Make the cgroups of a bare task; return the files through which its first process joins them."""
        ...

    def mover(self, task: Task) -> tuple[str, ...]:
        """Command that moves the process whose pid is appended to the task's cgroup; empty if files do."""
        ...

    def runc_cgroup(self, task: Task) -> RuncCgroup:
        """How runc is told to make the cgroup of a container that has no engine."""
        ...

    def make_parent(self, parent: str) -> None:
        """Make the parent cgroup of an engine's containers."""
        ...

    def remove(self, task: Task) -> None:
        """Remove the task's cgroup and everything that runs in it."""
        ...

    def prune_parent(self, parent: str) -> bool:
        """Remove the parent if it is empty; return whether it is gone."""
        ...


@dataclass(frozen=True)
class RuncCgroup:
    """`path`: `cgroupsPath` of the OCI configuration. `by_systemd`: whether runc asks systemd for the cgroup."""

    path: str
    by_systemd: bool


def placement_of(host: Host, ledger: Ledger, engine: DockerClient | None) -> Placement:
    """Use the engine's driver if there is an engine, else systemd's if systemd runs, else plain cgroups."""
    cgroups = cgroups_of(host)
    if engine is not None:
        systemd = engine.info().get("CgroupDriver") == "systemd"
    else:
        systemd = (host.read("/proc/1/comm") or b"").strip() == b"systemd"
    return SystemdSlices(host, ledger, cgroups) if systemd else PlainCgroups(host, ledger, cgroups)


@dataclass(frozen=True)
class PlainCgroups:
    """Cgroup directories made by hand, as an engine's `cgroupfs` driver makes them."""

    host: Host
    ledger: Ledger
    cgroups: Cgroups

    def engine_parent(self, parent: str) -> str:
        """Path of the parent, absolute from the root of the hierarchy."""
        return f"/{parent}"

    def path(self, parent: str) -> str:
        """The parent's own name is its path."""
        return parent

    def prefix(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 - the launcher joins the cgroups itself
        """Return no words."""
        return ()

    def make(self, task: Task) -> tuple[str, ...]:
        """Make the parent, then the task's own cgroup with its limits."""
        self.make_parent(task.cgroup_parent)
        if task.cgroup is CgroupPlace.ROOT:
            return root_procs(self.cgroups)
        path = leaf(task)
        self.ledger.note(Kind.CGROUP, path, host=self.host.name)
        directories = self.cgroups.directories(path)
        self._make(directories)
        seen = fetched(self.host, cpuset_files(self.cgroups, path))
        self._write(seen, leaf_writes(self.cgroups, path, task.limits, seen.read))
        return tuple(f"{directory}/cgroup.procs" for directory in directories)

    def mover(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 - the process is moved by the files of `make`
        """Return no words."""
        return ()

    def runc_cgroup(self, task: Task) -> RuncCgroup:
        """A directory beside those of bare tasks."""
        return RuncCgroup(f"/{leaf(task)}", by_systemd=False)

    def make_parent(self, parent: str) -> None:
        """Make the parent in every hierarchy: the first task must not leave out one that the next needs."""
        self.ledger.note(Kind.CGROUP, parent, host=self.host.name)
        self._make(self.cgroups.directories(parent))
        seen = fetched(self.host, cpuset_files(self.cgroups, parent))
        self._write(seen, parent_writes(self.cgroups, parent, seen.read))

    def remove(self, task: Task) -> None:
        """Remove the cgroup and kill whatever is left in it."""
        clear(self.host, self.cgroups, leaf(task))
        self.ledger.forget(Kind.CGROUP, leaf(task), host=self.host.name)

    def prune_parent(self, parent: str) -> bool:
        """A parent in use stays, and so does its entry in the ledger."""
        gone = prune(self.host, self.cgroups, parent)
        if gone:
            self.ledger.forget(Kind.CGROUP, parent, host=self.host.name)
        return gone

    def _make(self, directories: Sequence[str]) -> None:
        """Make directories.

        Retry, as another tare that ends may remove a common ancestor between the steps of `mkdir -p`.
        """
        for last in (False, False, True):
            if self.host.run(["mkdir", "-p", "--", *directories], timeout_s=_CALL_S, check=last).code == 0:
                return

    @staticmethod
    def _write(host: Host, writes: Iterable[Write]) -> None:
        for write in writes:
            try:
                host.put(write.value.encode(), write.path)
            except RunFailed as error:
                raise EnvironmentLacks(
                    f"the cgroup limit {write.value!r} is refused: {error.what}",
                    hint="see /proc/cgroups, and the limits that tare itself runs under",
                ) from error


@dataclass(frozen=True)
class SystemdSlices:
    """A slice for the run and a scope for each bare task, as an engine's `systemd` driver makes them."""

    host: Host
    ledger: Ledger
    cgroups: Cgroups

    def engine_parent(self, parent: str) -> str:
        """Name of the slice."""
        return slice_name(parent)

    def path(self, parent: str) -> str:
        """Path of the slice inside its ancestor slices."""
        return slice_path(parent)

    def prefix(self, task: Task) -> tuple[str, ...]:
        """Words that have systemd start the launcher in a scope with the task's limits."""
        if task.cgroup is CgroupPlace.ROOT:
            return ()
        properties = [word for item in scope_properties(task.limits, self.host.read) for word in ("-p", item)]
        unit = f"--unit={scope_name(task)}"
        where = f"--slice={slice_name(task.cgroup_parent)}"
        return ("systemd-run", "--scope", "--quiet", "--collect", unit, where, *properties, "--")

    def make(self, task: Task) -> tuple[str, ...]:
        """Only note the scope in the ledger: systemd makes it when the launcher is run."""
        self.make_parent(task.cgroup_parent)
        if task.cgroup is CgroupPlace.ROOT:
            return root_procs(self.cgroups)
        self.ledger.note(Kind.CGROUP, self._scope(task), host=self.host.name)
        return ()

    def mover(self, task: Task) -> tuple[str, ...]:
        """Have systemd make the scope around a shell, which moves the process there and ends.

        What starts and supervises the task stays outside, so its memory and CPU time are not the task's.
        """
        if task.cgroup is CgroupPlace.ROOT:
            return ()
        directories = self.cgroups.directories(self._scope(task))
        procs = " ".join(shlex.quote(f"{each}/cgroup.procs") for each in directories)
        return (*self.prefix(task), "sh", "-c", _MOVE.format(procs=procs), "sh")

    def runc_cgroup(self, task: Task) -> RuncCgroup:
        """A scope made by systemd: in a slice, it takes the limits of a directory that others made away again."""
        prefix, _, name = task.name.partition("-")
        return RuncCgroup(f"{slice_name(task.cgroup_parent)}:{prefix}:{name}", by_systemd=True)

    def make_parent(self, parent: str) -> None:
        """Only note the slice in the ledger: it is made with its first scope."""
        self.ledger.note(Kind.CGROUP, slice_path(parent), host=self.host.name)

    def remove(self, task: Task) -> None:
        """Wait until the scope is gone: systemd removes an empty scope by itself."""
        clear(self.host, self.cgroups, self._scope(task))
        self.ledger.forget(Kind.CGROUP, self._scope(task), host=self.host.name)

    def prune_parent(self, parent: str) -> bool:
        """Remove an empty slice, and empty ones above it. They stay active until they are stopped."""
        gone = prune(self.host, self.cgroups, slice_path(parent))
        if gone:
            stop_units(self.host, self.cgroups, slice_path(parent))
            self.ledger.forget(Kind.CGROUP, slice_path(parent), host=self.host.name)
        return gone

    def _scope(self, task: Task) -> str:
        return f"{slice_path(task.cgroup_parent)}/{scope_name(task)}"


def root_procs(cgroups: Cgroups) -> tuple[str, ...]:
    """Files through which a process joins the root of every hierarchy."""
    return tuple(f"{hierarchy.mount}/cgroup.procs" for hierarchy in cgroups.hierarchies)


def leaf(task: Task) -> str:
    """Cgroup of one task; an engine puts its containers beside it."""
    return f"{task.cgroup_parent}/{task.name}"


def slice_name(parent: str) -> str:
    """`tare/run-1` → `tare-run_1.slice`: a dash in a slice's name means a level (systemd.slice(5))."""
    return "-".join(re.sub(r"[^A-Za-z0-9.]", "_", part) for part in parent.split("/")) + ".slice"


def slice_path(parent: str) -> str:
    """`tare/run` → `tare.slice/tare-run.slice`."""
    parts = slice_name(parent).removesuffix(".slice").split("-")
    return "/".join("-".join(parts[: index + 1]) + ".slice" for index in range(len(parts)))


def scope_name(task: Task) -> str:
    """Name of the systemd unit that holds one bare task."""
    return f"{task.name}.scope"


def scope_properties(limits: Limits, read: Read) -> tuple[str, ...]:
    """Limits as properties of systemd.resource-control(5); systemd understands MemoryMax on v1 too."""
    properties = ["Delegate=yes"]
    if limits.cpus is not None:
        properties.append(f"AllowedCPUs={limits.cpus}")
    if limits.cpu_weight is not None:
        properties.append(f"CPUWeight={limits.cpu_weight}")
    quota = cpu_quota_us(limits)
    if quota is not None:
        properties += [f"CPUQuota={quota / 1000:g}%", "CPUQuotaPeriodSec=100ms"]
    if limits.memory_bytes is not None:
        properties += [f"MemoryMax={limits.memory_bytes}", f"MemorySwapMax={limits.swap_bytes or 0}"]
    if limits.mems is not None:
        properties.append(f"AllowedMemoryNodes={limits.mems}")
    if limits.pids is not None:
        properties.append(f"TasksMax={limits.pids}")
    if limits.disk_iops is not None:
        for disk in disks(read):
            properties += [f"IO{way}IOPSMax={disk.path} {limits.disk_iops}" for way in ("Read", "Write")]
    return tuple(properties)


def set_cpus(host: Host, instance: Instance, cpus: str) -> None:
    """Move all processes of a task to a list of CPUs, and verify it. Raises `RunFailed` if they did not move."""
    pid, name = instance.process.pid, instance.task.name
    cgroups = cgroups_of(host)
    paths = parse_proc_cgroup(_text(host, f"/proc/{pid}/cgroup"))
    path = next((path for names, path in paths.items() if "cpuset" in names.split(",")), paths.get(""))
    mount = cgroups.mount_of("cpuset")
    if mount is None or path is None or instance.task.cgroup_parent.rpartition("/")[2] not in path:
        raise RunFailed(
            f"{name} has no cpuset control group, so it cannot be moved to CPUs {cpus}",
            hint="let tare limit it (cgroup: run), on a kernel with the cpuset controller",
        )
    host.put(cpus.encode(), f"{mount}/{limited(path).strip('/')}/cpuset.cpus")
    allowed = parse_status(_text(host, f"/proc/{pid}/status")).get("Cpus_allowed_list")
    if allowed is None:
        raise RunFailed(f"{name} ended before it was moved to CPUs {cpus}")
    if set(cpu_list(allowed) or ()) != set(cpu_list(cpus) or ()):
        raise RunFailed(f"{name} should run on CPUs {cpus} but may use {allowed}")


def set_cpu_weight(host: Host, cgroups: Cgroups, pid: int, limits: Limits) -> None:
    """Set the requested CPU weight of an engine's container; does nothing for a container that has ended."""
    paths = parse_proc_cgroup(_text(host, f"/proc/{pid}/cgroup"))
    path = next((path for names, path in paths.items() if "cpu" in names.split(",")), paths.get("", ""))
    if not path.strip("/"):  # an ended process is listed in the root cgroup, which is not the container's
        return
    for write in weight_writes(cgroups, limited(path).strip("/"), limits):
        host.put(write.value.encode(), write.path)


def _text(host: Host, path: str) -> str:
    return (host.read(path) or b"").decode(errors="replace")
