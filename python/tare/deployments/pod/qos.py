"""Control groups of a pod for its QoS class, as kubelet makes them with the `cgroupfs` driver.

Sources: Kubernetes 1.34, pkg/kubelet/cm/helpers_linux.go (shares, quotas), qos_container_manager_linux.go
(classes), pkg/kubelet/qos/policy.go (oom_score_adj).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tare.deployments import Limits, PodSetting
from tare.deployments.cgroup.hierarchy import CgroupKind, Cgroups, Write, parent_writes
from tare.deployments.defaults import CPU_PERIOD_US, cpu_quota_us
from tare.deployments.disks import Read
from tare.study.values import Qos, cpu_set

SANDBOX_OOM = -998
_LEAST_SHARES, _MOST_SHARES = 2, 1 << 18
_OOM = {Qos.GUARANTEED: -997, Qos.BEST_EFFORT: 1000}
_PODS = "kubepods"


@dataclass(frozen=True)
class PodGroups:
    """`pod`: path of the pod's group below the hierarchies' roots. `shares`, `oom_score_adj`: of its container."""

    pod: str
    shares: int
    oom_score_adj: int
    writes: tuple[Write, ...]


def groups_of(  # noqa: PLR0913, PLR0917 - a pod and its surroundings
    cgroups: Cgroups, parent: str, name: str, setting: PodSetting, limits: Limits, read: Read
) -> PodGroups:
    """Groups to make below a run's `parent` for a pod of one container, with everything to write to them."""
    qos = setting.qos or Qos.BEST_EFFORT
    above = [f"{parent}/{_PODS}"]
    if qos is not Qos.GUARANTEED:
        above.append(f"{above[0]}/{qos.value.replace('-', '')}")
    pod = f"{above[-1]}/pod{name}"
    shares = cpu_shares_of(cpu_request(setting, limits))
    writes = [*parent_writes(cgroups, pod, read), *_shares(cgroups, above[0], 1024 * _cpus(read))]
    if qos is Qos.BEST_EFFORT:
        writes += _shares(cgroups, above[-1], _LEAST_SHARES)
    if qos is Qos.BURSTABLE:
        writes += _shares(cgroups, above[-1], shares)
    writes += [*_shares(cgroups, pod, shares), *_limits(cgroups, pod, limits)]
    return PodGroups(pod, shares, oom_score_adj(setting, limits, _memory(read)), tuple(writes))


def cpu_shares_of(cpus: float | None) -> int:
    """cpu.shares for a CPU request: 1024 for each CPU, within the kernel's bounds."""
    return min(max(_LEAST_SHARES, int((cpus or 0) * 1024)), _MOST_SHARES)


def cpu_weight_of(shares: int) -> int:
    """cpu.weight of control groups v2 for cpu.shares, converted as kubelet and runc 1.1 do."""
    return 1 + (shares - _LEAST_SHARES) * 9999 // (_MOST_SHARES - _LEAST_SHARES)


def cpu_request(setting: PodSetting, limits: Limits) -> float | None:
    """CPU request of a container.

    A missing request equals the limit (API defaults); exclusive CPUs are a limit too.
    """
    if setting.qos is Qos.BEST_EFFORT:
        return None
    own = float(len(cpu_set(limits.cpus))) if setting.qos is Qos.GUARANTEED and limits.cpus else None
    return setting.cpu_request or limits.cpu_quota or own


def oom_score_adj(setting: PodSetting, limits: Limits, capacity: int) -> int:
    """oom_score_adj of a container: the more memory it requests, the later the kernel kills it."""
    if setting.qos in _OOM:
        return _OOM[setting.qos]
    wanted = 1000 - 1000 * (setting.memory_request_bytes or limits.memory_bytes or 0) // capacity
    return min(max(wanted, 1000 + _OOM[Qos.GUARANTEED]), 999)


def _shares(cgroups: Cgroups, path: str, shares: int) -> Iterator[Write]:
    mount = cgroups.mount_of("cpu")
    if cgroups.kind is CgroupKind.V2:
        yield Write(f"{mount}/{path}/cpu.weight", str(cpu_weight_of(shares)))
    else:
        yield Write(f"{mount}/{path}/cpu.shares", str(shares))


def _limits(cgroups: Cgroups, path: str, limits: Limits) -> Iterator[Write]:
    """Limits of the pod. They equal its container's, as a pod has limits if all of its containers have them."""
    quota, unified = cpu_quota_us(limits), cgroups.kind is CgroupKind.V2
    cpu, memory = (f"{cgroups.mount_of(controller)}/{path}" for controller in ("cpu", "memory"))
    if quota is not None and unified:
        yield Write(f"{cpu}/cpu.max", f"{quota} {CPU_PERIOD_US}")
    elif quota is not None:
        yield Write(f"{cpu}/cpu.cfs_period_us", str(CPU_PERIOD_US))
        yield Write(f"{cpu}/cpu.cfs_quota_us", str(quota))
    if limits.memory_bytes is not None:
        name = "memory.max" if unified else "memory.limit_in_bytes"
        yield Write(f"{memory}/{name}", str(limits.memory_bytes))


def _cpus(read: Read) -> int:
    return len(cpu_set((read("/sys/devices/system/cpu/online") or b"0").decode()))


def _memory(read: Read) -> int:
    lines = (read("/proc/meminfo") or b"").decode().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemTotal:")), 1 << 62)
