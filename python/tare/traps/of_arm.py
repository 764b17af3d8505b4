"""What the traps ask for, as far as a study's text alone tells it of an arm, before anything has run."""

from __future__ import annotations

from collections.abc import Mapping

from tare.deployments import CONTAINERD, POD
from tare.study.model import ArmSettings
from tare.study.values import NetworkKind, size_bytes
from tare.traps.predicate import NONE, Facts, Known

CONTAINERS = frozenset({"container", "vm-container", CONTAINERD})
_SHM_OF_ENGINES = 64 << 20
_CACHES: Mapping[str, tuple[str, ...]] = {
    "mariadb": ("innodb_buffer_pool_size",),
    "mysql": ("innodb_buffer_pool_size",),
    "postgresql": ("shared_buffers",),
    "ferretdb": ("shared_buffers",),
    "redis": ("maxmemory",),
    "valkey": ("maxmemory",),
}
"""Database → settings with the size of its cache."""
_PATHS: Mapping[str, str] = {
    NetworkKind.HOST: "host",
    NetworkKind.UNTRACKED: "host",
    NetworkKind.PUBLISHED_LOOPBACK: "docker-proxy",
    NetworkKind.PUBLISHED_ADDRESS: "dnat",
    NetworkKind.HOST_PORT: "dnat",
    NetworkKind.CLUSTER_IP: "dnat",
    NetworkKind.NODE_PORT: "dnat",
    NetworkKind.ROOTLESSPORT: "rootlessport",
    NetworkKind.SLIRP4NETNS: "slirp4netns",
    NetworkKind.PASTA: "pasta",
}
"""Network → what carries its connections; the others have addresses of their own."""
_FILE_SYSTEMS: Mapping[str, str] = {"layer": "overlay", "tmpfs": "tmpfs", "nfs": "nfs4"}


def placed(deployment: str) -> str:
    """Return where a server is, in the words of traps."""
    return "pod" if deployment == POD else "container" if deployment in CONTAINERS else "process"


def facts_of_arm(settings: ArmSettings) -> Facts:
    """Return what the study sets; what the machine decides is not known."""
    sut, limits = settings.sut, settings.sut.limits
    where = placed(sut.deployment)
    inside = where != "process"
    facts: dict[str, Known | None] = {
        "database": sut.database,
        "placed": where,
        "runtime": (sut.runtime or None) if inside else NONE,
        "net.path": _path(settings) if inside else "host",
        "data.filesystem": _FILE_SYSTEMS.get(sut.storage.kind) if inside else None,
        "cgroup.cpu_quota": limits.cpu_quota or NONE,
        "cgroup.memory_limit_bytes": NONE if limits.memory is None else size_bytes(limits.memory),
        "limits.nofile": limits.nofile,
        "limits.memlock_bytes": None if limits.memlock is None else size_bytes(limits.memlock),
        "cache.bytes": _cache(settings),
        "jvm.heap_bytes": _size(sut.settings.get("heap")),
    }
    if limits.shm is not None:
        facts["shm.bytes"] = size_bytes(limits.shm)
    elif inside:
        facts["shm.bytes"] = _SHM_OF_ENGINES
    return {name: value for name, value in facts.items() if value is not None}


def _path(settings: ArmSettings) -> str | None:
    sut = settings.sut
    if sut.network == NetworkKind.PUBLISHED_LOOPBACK and sut.engine not in (None, "docker"):
        return "dnat"
    return _PATHS.get(str(sut.network), NONE)


def _cache(settings: ArmSettings) -> int | None:
    names = _CACHES.get(settings.sut.database or "", ())
    return next((size for name in names if (size := _size(settings.sut.settings.get(name))) is not None), None)


def _size(value: object) -> int | None:
    """Return a setting as bytes; `None` for what is no plain size."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    text = str(value).strip().upper().removesuffix("B").removesuffix("I")
    number, unit = (text[:-1], text[-1:]) if text[-1:] in "KMG" else (text, "")
    return size_bytes(f"{number}{unit}") if number.isdigit() and int(number) > 0 else None
