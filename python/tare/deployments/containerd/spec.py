"""OCI configuration of a container made by containerd: containerd's defaults and the task's settings. Pure.

The confinement (seccomp filter, capabilities, masked paths, devices) stays as containerd sets it, because it is
part of the deployment. Everything around the program is as in every other deployment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tare.deployments import Task
from tare.deployments.containerd.accounts import Account
from tare.deployments.defaults import CPU_PERIOD_US, cpu_quota_us, environment
from tare.deployments.disks import Disk
from tare.deployments.rlimits import Rlimit
from tare.deployments.vm_container.oci_config import bind_mount, oci_rlimits, own_mounts


@dataclass(frozen=True)
class Place:
    """What the host gives a container.

    `root`: its mounted tree. `cgroup`: its `cgroupsPath`. `hostname`: its host name. `names`: path inside → file of
    the host that is mounted there. `network`: path of a network namespace to join; `None` for the host's.
    `disks`: disks whose operations are limited.
    """

    root: str
    cgroup: str
    hostname: str
    names: Mapping[str, str]
    network: str | None = None
    disks: Sequence[Disk] = ()


def spec_of(
    default: Mapping[str, Any], task: Task, place: Place, user: Account, limits: Mapping[str, Rlimit]
) -> dict[str, Any]:
    """Build the configuration from `default`, the one that containerd gives a container by itself."""
    linux = default["linux"]
    namespaces = [each for each in linux["namespaces"] if each["type"] != "network"]
    if place.network is not None:
        namespaces.append({"type": "network", "path": place.network})
    binds = [bind_mount(each.target, each.source, "ro" if each.read_only else "rw") for each in task.binds]
    names = [bind_mount(target, source, "ro") for target, source in place.names.items()]
    return {
        **default,
        "hostname": place.hostname,
        "root": {"path": place.root, "readonly": True},
        "mounts": [*own_mounts(task.limits), *binds, *names],
        "process": _process(default["process"], task, place, user, limits),
        "linux": {
            **linux,
            "cgroupsPath": place.cgroup,
            "namespaces": namespaces,
            "resources": {**linux["resources"], **_resources(task, place)},
        },
    }


def _process(
    default: Mapping[str, Any], task: Task, place: Place, user: Account, limits: Mapping[str, Rlimit]
) -> dict[str, Any]:
    env = {"HOME": user.home, "HOSTNAME": place.hostname, **environment(task)}
    return {
        **default,
        "terminal": False,
        "user": {"uid": user.uid, "gid": user.gid, "additionalGids": list(user.groups)},
        "args": list(task.argv),
        "env": [f"{name}={value}" for name, value in env.items()],
        "cwd": task.workdir,
        "noNewPrivileges": False,
        "oomScoreAdj": 0,
        "rlimits": oci_rlimits(limits),
    }


def _resources(task: Task, place: Place) -> dict[str, Any]:
    """Resource limits.

    A memory limit includes swap, as everywhere; the CPU weight stays at the kernel's default.
    """
    limits, resources, cpu = task.limits, dict[str, Any](), dict[str, Any]()
    if limits.cpus is not None:
        cpu["cpus"] = limits.cpus
    if limits.mems is not None:
        cpu["mems"] = limits.mems
    if (quota := cpu_quota_us(limits)) is not None:
        cpu |= {"period": CPU_PERIOD_US, "quota": quota}
    if cpu:
        resources["cpu"] = cpu
    if limits.memory_bytes is not None:
        resources["memory"] = {"limit": limits.memory_bytes, "swap": limits.memory_and_swap_bytes}
    if limits.pids is not None:
        resources["pids"] = {"limit": limits.pids}
    if limits.disk_iops is not None:
        rates = [_rate(disk, limits.disk_iops) for disk in place.disks]
        resources["blockIO"] = {"throttleReadIOPSDevice": rates, "throttleWriteIOPSDevice": rates}
    return resources


def _rate(disk: Disk, rate: int) -> dict[str, int]:
    major, _, minor = disk.device.partition(":")
    return {"major": int(major), "minor": int(minor), "rate": rate}
