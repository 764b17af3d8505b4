"""A study's settings in the units of deployments."""

from __future__ import annotations

from collections.abc import Mapping

from tare.deployments import Limits, MachineSetting, PodSetting
from tare.study.model import LimitsSpec, PodSpec, VmSpec
from tare.study.values import size_bytes


def limits_of(spec: LimitsSpec) -> Limits:
    """Convert a study's limits to the units of deployments."""
    return Limits(
        cpus=spec.cpus,
        cpu_quota=spec.cpu_quota,
        cpu_weight=spec.cpu_weight,
        memory_bytes=None if spec.memory is None else size_bytes(spec.memory),
        nofile=spec.nofile,
        disk_iops=spec.disk_iops,
        shm_bytes=None if spec.shm is None else size_bytes(spec.shm),
        memlock_bytes=None if spec.memlock is None else size_bytes(spec.memlock),
        swap_bytes=None if spec.swap is None else size_bytes(spec.swap),
        mems=spec.mems,
        pids=spec.pids,
    )


def machine_of(spec: VmSpec | None) -> MachineSetting:
    """Convert a study's settings of virtual machines to the units of deployments."""
    if spec is None:
        return MachineSetting()
    return MachineSetting(spec.cache, spec.aio, size_bytes(spec.disk), spec.pin)


def pod_of(spec: PodSpec | None) -> PodSetting | None:
    """Convert a study's pod settings to the units of deployments."""
    if spec is None:
        return None
    memory = None if spec.memory_request is None else size_bytes(spec.memory_request)
    return PodSetting(spec.cni, spec.proxy, spec.services, spec.qos, spec.cpu_request, memory)


def sysctls_of(given: Mapping[str, str | int]) -> Mapping[str, str]:
    """Write values as the kernel prints them, with single blanks."""
    return {name: " ".join(str(value).split()) for name, value in given.items()}
