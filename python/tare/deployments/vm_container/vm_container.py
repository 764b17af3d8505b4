"""`vm-container`: the image in a container, made by crun in a virtual machine of its own.

It differs from `vm` only in what surrounds the task inside; machine, kernel, disks and network are the same.
docs/concepts/deployments.md, docs/decisions/0018-crun-in-virtual-machines.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tare.deployments import Task
from tare.deployments.cgroup.hierarchy import parse_proc_cgroup
from tare.deployments.container.layers import must_have_empty_target
from tare.deployments.defaults import user
from tare.deployments.mounts import covering, mountinfo_of, parse_mountinfo
from tare.deployments.observe import namespaces_of
from tare.deployments.rlimits import ceilings, rlimits
from tare.deployments.vm.command import Disk
from tare.deployments.vm.guest import GuestHost
from tare.deployments.vm.kernel import Kernel, kernel_of
from tare.deployments.vm.runtime import Runtime, profile_of, runtime_of
from tare.deployments.vm.vm import Vm
from tare.deployments.vm_container.oci_config import CAPABILITIES, CGROUP, oci_config, seccomp_of
from tare.errors import RunFailed
from tare.record.made_by import GuestContainer
from tare.sites import Host
from tare.sites.layout import default_layout
from tare.sites.ledger import Ledger

if TYPE_CHECKING:
    from docker import DockerClient

_DISKS, _NAMES = "/disks", "/names"
"""Where the machine mounts its disks and keeps its own files, as in crates/bin/src/guest/container.rs."""
_APART = ("cgroup", "ipc", "mnt", "pid", "uts")
"""Kinds of namespaces, as /proc names them, that a container has of its own."""
_RELEASE = re.compile(r"\d+(?:\.\d+)+")


class VmContainer:
    """Makes deployments whose machines run a container."""

    needs = Vm.needs
    isolates_network = Vm.isolates_network
    own_root = Vm.own_root

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> Vm:
        """Make the deployment; the host's engine is not used inside."""
        return Vm(host, ledger, engine, inside=Contained)


@dataclass
class Contained:
    """Runs one container in each machine, on the machine's own network."""

    host: Host
    ledger: Ledger
    deployment: str = "vm-container"

    @cached_property
    def _runtime(self) -> Runtime:
        return runtime_of(self.host, self.ledger, default_layout())

    @cached_property
    def _kernel(self) -> Kernel:
        return kernel_of(self.host, self.ledger, default_layout(), self._runtime)

    def kernel(self) -> Kernel:
        """The kernel, with crun in its initial RAM file system."""
        return self._kernel

    def must_take(self, task: Task) -> None:
        """Refuse volumes, which crun does not have, and a second data layer: the writable root holds only one."""
        if task.volumes or len(task.layers) > 1:
            raise RunFailed(f"{task.name}: in a virtual machine a container has no volumes, and one data layer")
        for layer in task.layers:
            must_have_empty_target(self.host, task, layer)

    def request(self, task: Task, disks: Sequence[Disk], names: Iterable[str]) -> Mapping[str, Any]:
        """The container's configuration for crun."""
        profile, release = profile_of(self.host, self._runtime), release_of(self._kernel.version)
        seccomp = seccomp_of(profile, frozenset(CAPABILITIES), release)
        own = {name: f"{_NAMES}/{name.strip('/').replace('/', '-')}" for name in names}
        places = {disk.target: f"{_DISKS}/{disk.serial}" for disk in disks}
        config = oci_config(task, places, own, rlimits(task.limits, ceilings(self.host)), seccomp)
        return {"container": {"config": config, "user": user(task), "layer": layer_of(task, disks)}}

    def container(self, guest: GuestHost, pid: int) -> GuestContainer:
        """Read the container's facts from the guest's kernel.

        Raises `RunFailed` if the task is not in a container.
        """
        seen = Seen(
            namespaces_of(guest, pid),
            namespaces_of(guest, 1),
            (guest.read(f"/proc/{pid}/cgroup") or b"").decode(errors="replace"),
            mountinfo_of(guest, pid),
        )
        return replace(container_facts(seen), runtime=f"crun {self._runtime.version}")


def layer_of(task: Task, disks: Sequence[Disk]) -> dict[str, Any] | None:
    """The disk that becomes a layer of the container's root, and where its data appears.

    `None` if there is none.
    """
    if not task.layers:
        return None
    (layer,) = task.layers
    serial = next(disk.serial for disk in disks if disk.target == layer.target)
    return {"serial": serial, "target": layer.target, "copy_up": layer.copy_up}


@dataclass(frozen=True)
class Seen:
    """Namespaces of a task and of the machine's first process, and the task's /proc/PID/cgroup and mountinfo."""

    own: Mapping[str, str]
    machine: Mapping[str, str]
    cgroup: str
    mountinfo: str


def container_facts(seen: Seen) -> GuestContainer:
    """Facts that show that the task is in a container. Raises `RunFailed` with those that are missing."""
    shared = [kind for kind in _APART if seen.own.get(kind) in (None, seen.machine.get(kind))]
    root = covering(parse_mountinfo(seen.mountinfo), "/")
    cgroup = parse_proc_cgroup(seen.cgroup).get("")
    wrong = [f"its {kind} namespace is the machine's" for kind in shared]
    if root is None or root.fstype != "overlay":
        wrong.append(f"its root is {'not to be seen' if root is None else root.fstype} and no overlay")
    if cgroup != CGROUP:
        wrong.append(f"its control group is {cgroup} and not {CGROUP}")
    if wrong:
        raise RunFailed(f"in the virtual machine the task is in no container: {'; '.join(wrong)}")
    network = "host" if seen.own.get("net") == seen.machine.get("net") else "own"
    return GuestContainer(namespaces=tuple(_APART), root="overlay", cgroup=cgroup, network=network)


def release_of(version: str) -> tuple[int, ...]:
    """Kernel release: `linux-image-6.1.0-53-cloud-amd64` → (6, 1, 0). Raises `RunFailed` if there is none."""
    if (match := _RELEASE.search(version)) is None:
        raise RunFailed(f"{version} contains no kernel release")
    return tuple(int(part) for part in match[0].split("."))
