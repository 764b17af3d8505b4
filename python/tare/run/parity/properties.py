"""What is held against what, before two runs may be called comparable: each property by name, with its reading.

A property says which dotted keys of a study vary it; a factor that names one of them is meant to, any other
difference is an accident. docs/concepts/parity.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tare.deployments import CONTAINERD, POD
from tare.run.record import RunRecord

SIDES = ("sut", "client")
NAMES = {"sut": "SUT", "client": "client"}

_OF_KUBELET = frozenset({"seccomp", "speculation", "capabilities", "cgroup"})
BY_NATURE: Mapping[frozenset[str], frozenset[str]] = {
    **{frozenset({POD, other}): _OF_KUBELET for other in ("bare", "container", CONTAINERD, "vm", "vm-container")},
    frozenset({"bare", "container"}): frozenset({"seccomp", "speculation", "capabilities"}),
    frozenset({"bare", "vm"}): frozenset({"speculation", "capabilities"}),
    frozenset({"container", "vm"}): frozenset({"seccomp", "speculation", "capabilities"}),
    frozenset({"bare", "vm-container"}): frozenset({"seccomp", "speculation", "capabilities"}),
    frozenset({"container", "vm-container"}): frozenset({"speculation", "capabilities"}),
    frozenset({"bare", CONTAINERD}): frozenset({"seccomp", "speculation", "capabilities"}),
    frozenset({"container", CONTAINERD}): frozenset({"capabilities"}),
    frozenset({CONTAINERD, "vm"}): frozenset({"seccomp", "speculation", "capabilities"}),
    frozenset({CONTAINERD, "vm-container"}): frozenset({"speculation", "capabilities"}),
    frozenset({"vm", "vm-container"}): frozenset({"seccomp", "speculation", "capabilities"}),
}
"""What two deployments differ in by what they are: an engine's seccomp filter and capabilities, the speculation
controls that kernels before 5.16 tie to one (commit 2f46993d83ff), those of a virtual machine's own kernel, and
kubelet's control groups with the weight and oom_score_adj of the pod's class of service.
Namespaces and the last part of a control group's path are each run's own, and compared between no two runs."""

_SECCOMP = ("engine", "runtime", "confinement.seccomp", "confinement.no_new_privileges")
LATER = (": capabilities", ": no new privileges", ": user namespace")
"""How properties end that records of before 0.2 do not have."""
_RIGHTS = {"capabilities": "capabilities", "no_new_privileges": "no new privileges"}
_POD = {
    "held by the sandbox": ("pod.sandbox", "network"),
    "interface": ("pod.cni", "network"),
    "proxy": ("pod.proxy", "network"),
    "services": ("pod.services", "network"),
    "rules": ("pod.services", "pod.proxy", "network"),
    "qos": ("deployment", "pod.qos"),
    "storage class": ("deployment", "storage.kind", "storage.storage_class"),
    **dict.fromkeys(("node", "kubelet", "runtime", "cpu manager"), ("deployment",)),
    "kubelet's oom_score_adj": ("pod.qos", "pod.memory_request"),
}
"""What of two pods is held against each other, and the keys that vary it; a pod where there is none is by any."""
_POD_KEYS = ("pod.sandbox", "pod.cni", "pod.proxy", "pod.services", "pod.qos")
_REQUESTED = ("pod.qos", "pod.cpu_request", "pod.memory_request")
_CONTROLLERS = frozenset({"cpu", "cpuacct", "cpuset", "memory", "blkio"})
_STORAGE = ("storage.kind", "storage.file_system", "storage.device", "storage.storage_class")
_ANONYMOUS, _LOOP = "0", "7"
"""Major numbers of Documentation/admin-guide/devices.txt: unnamed devices, loopback devices."""
_GUEST = {
    "accelerator": (),
    "kernel": (),
    "cpus": ("limits.cpus", "limits.cpu_quota", "vm.pin"),
    "memory_bytes": ("limits.memory",),
    "disk_cache": ("vm.cache",),
    "disk_aio": ("vm.aio",),
    "container": (),
    "cpu_threads": ("vm.pin", "limits.cpus", "limits.cpu_quota"),
}
"""What of two virtual machines is held against each other, and the keys that vary it."""
TOKEN = re.compile(r"(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])")
"""By which tare names what it makes for a run."""
ENVIRONMENT = "environment variable "
"""Begins the name of each."""
_OWN_VARIABLES = frozenset({"HOSTNAME", "container", "TERM"})
"""Each run's own name, and what Podman says to a program about its place."""
_OF_CLUSTER = "KUBERNETES_"
"""Begins the variables by which a pod finds the API's server."""
_UID = re.compile(r"pod[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")
"""A pod's control group, which is each pod's own."""
_OF_HOST = "host: "
PLUGIN = "plug-in: "
_HOST = {
    "thp": "transparent huge pages",
    "thp_defrag": "transparent huge pages, defragmentation",
    "proactive_reclaim": "proactive reclaim",
    "kernel": "kernel",
    "cpu_online": "CPUs online",
    "cpu_governors": "CPU frequency governors",
    "cpu_turbo": "CPU turbo",
    "clocksource": "clock source",
    "data_filesystem": "file system of the data path",
    "data_source": "device of the data path",
    "data_mount_options": "mount options of the data path",
    "data_io_scheduler": "I/O scheduler of the data path",
    "tare_is_root": "tare runs as root",
}
"""Facts of the host that decide a result and may be changed under a running study."""


_WIRE = {"device": "interface", "gateway": "gateway", "mtu": "MTU", "speed_mbit": "link speed", "qdisc": "queue"}
"""Of a side of the wire; round trips and throughput vary by chance, and are in the record only."""


@dataclass(frozen=True)
class Reading:
    """One property of one run. `keys`: dotted keys of a study, any of which varies it."""

    name: str
    value: Any
    keys: frozenset[str] = frozenset()
    nature: str | None = None
    """Its name in `BY_NATURE`, where deployments may differ in it."""


def readings(record: RunRecord, side: str) -> Iterator[Reading]:
    """What was in force around one side, from its `Observation` and its image."""
    seen, image = record.parity.get(side), record.images.get(side) or {}
    label = NAMES[side]

    def one(name: str, value: Any, *keys: str, nature: str | None = None) -> Reading:
        return Reading(f"{label}: {name}", value, frozenset(f"{side}.{key}" for key in keys), nature)

    yield one("image digest", image.get("digest"), "image")
    yield one("emulated CPU", "yes" if side in record.emulated else "no", "deployment")
    if not isinstance(seen, Mapping):
        return
    yield one("binary digest", seen.get("binary_digest"), "image", "database")
    yield one("parent cgroup", parent_cgroup(seen.get("cgroups") or {}), "cgroup", "pod.qos", nature="cgroup")
    yield one("cpu weight", seen.get("cpu_weight"), "cgroup", "limits.cpu_weight", *_REQUESTED, nature="cgroup")
    yield one("CPU set", seen.get("cpus_allowed"), "limits.cpus")
    yield one("CPU quota", seen.get("cpu_quota"), "limits.cpu_quota")
    yield one("memory limit", seen.get("memory_bytes"), "limits.memory")
    yield one("disk operations", seen.get("disk_iops"), "limits.disk_iops")
    yield one("scheduler", seen.get("scheduler"))
    yield one("oom_score_adj", seen.get("oom_score_adj"), *_REQUESTED, nature="cgroup")
    yield one("pod", "yes" if seen.get("pod") else "no", "deployment", *_POD_KEYS)
    yield from _made_by(seen, one)
    yield from _confinement(seen, one)
    for name, value in (seen.get("limits") or {}).items():
        yield one(f"ulimit {name!r}", value, *(["limits.nofile"] if name == "Max open files" else []))
    for name, value in (seen.get("environment") or {}).items():
        if name not in _OWN_VARIABLES and not name.startswith(_OF_CLUSTER):
            yield one(f"{ENVIRONMENT}{name}", value, "image", "database")
    for name, value in (seen.get("guest") or {}).items():
        if name in _GUEST:
            yield one(f"virtual machine: {name}", value, "deployment", *_GUEST[name])
    for target, mount in (seen.get("mounts") or {}).items():
        yield one(f"file system of {target}", lies_on(mount), "image", *_STORAGE)


def _made_by(seen: Mapping[str, Any], one: Callable[..., Reading]) -> Iterator[Reading]:
    """What stands around a container that no engine made, or that is in a pod."""
    for name, value in (seen.get("containerd") or {}).items():
        yield one(f"containerd: {name}", value, "deployment", *(["network"] if name == "interface" else []))
    for name, value in _of_pod(seen).items():
        yield one(f"pod: {name}", value, *(_POD.get(name, _POD_KEYS)))


def _of_pod(seen: Mapping[str, Any]) -> Mapping[str, Any]:
    """What its pod has; a pod of no class of service says nothing of one."""
    return {name: value for name, value in (seen.get("pod") or {}).items() if value is not None}


def _confinement(seen: Mapping[str, Any], one: Callable[..., Reading]) -> Iterator[Reading]:
    yield one("seccomp", seen.get("seccomp"), *_SECCOMP, nature="seccomp")
    yield one("speculation controls", seen.get("speculation"), *_SECCOMP, nature="speculation")
    if seen.get("id_map") is not None:  # not so in records of before it was kept
        yield one("user namespace", seen["id_map"], "engine", "deployment")
    for key, name in _RIGHTS.items():
        if key in seen:  # not so in records of before it was kept
            yield one(name, seen[key], "engine", "runtime", f"confinement.{key}", nature="capabilities")


def lies_on(mount: str) -> str:
    """`tmpfs 0:57` → `tmpfs`, `ext4 7:3` → `ext4 on a loop device`: without numbers that are each mount's own."""
    fstype, _, device = mount.partition(" ")
    major = device.partition(":")[0]
    if major == _ANONYMOUS:
        return fstype
    return f"{fstype} on a loop device" if major == _LOOP else mount


TLS = "connections: "
"""Begins the name of each property of the connections."""
_TLS = {"version": "TLS version", "cipher": "TLS cipher suite"}


def tls_readings(record: RunRecord) -> Iterator[Reading]:
    """What client and server agreed on; nothing before the measure phase is over, and in clear text."""
    agreed = (record.measurement or {}).get("encryption") or {}
    keys = frozenset({"sut.tls", "sut.image", "sut.database", "client.image", "workload.name"})
    for key, name in _TLS.items():
        if key in agreed:
            yield Reading(f"{TLS}{name}", agreed[key], keys)


def plugin_readings(record: RunRecord) -> Iterator[Reading]:
    """The packages of plug-ins, with their versions, which no study can vary."""
    for name, package in (record.plugins or {}).items():
        yield Reading(f"{PLUGIN}{name}", f"{package['package']} {package['version']}")


def host_readings(record: RunRecord) -> Iterator[Reading]:
    """What no study can vary; a record of before a fact was kept has no reading of it."""
    for key, name in _HOST.items():
        if key in record.host:
            yield Reading(f"{_OF_HOST}{name}", record.host[key])
        if key in (record.client_host or {}):
            yield Reading(f"{_OF_HOST}{name} of the client's host", (record.client_host or {})[key])
    for node, host in _other_nodes(record):
        for key, name in _HOST.items():
            if key in host:
                yield Reading(f"{_OF_HOST}{name} of {node}'s host", host[key])
    yield from _wire_readings(record)


def _other_nodes(record: RunRecord) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Nodes beyond the first on hosts of their own, with the facts of these."""
    for node, seen in list((record.nodes or {}).items())[1:]:
        if "on" in seen:
            yield node, seen.get("host") or {}


def _wire_readings(record: RunRecord) -> Iterator[Reading]:
    """Of a run between hosts: which they are, and how each reaches the others."""
    between = record.between or {}
    for side, whose in (("sut", "the SUT's host"), ("client", "the client's host")):
        if between:
            yield Reading(f"{_OF_HOST}name of {whose}", between[side])
        yield from _way((between.get("sides") or {}).get(side), f"of {whose} to the other")
    for node, _ in _other_nodes(record):
        yield Reading(f"{_OF_HOST}name of {node}'s host", (record.nodes or {})[node]["on"])
        yield from _way((between.get("sides") or {}).get(node), f"of {node}'s host to the client's")
    for link in between.get("links") or ():
        yield from _way(link.get("route"), f"of {link['asks']} to {link['answers']}")


def _way(seen: Mapping[str, Any] | None, whose: str) -> Iterator[Reading]:
    for key, name in _WIRE.items():
        if key in (seen or {}):
            yield Reading(f"{_OF_HOST}{name} {whose}", (seen or {})[key])


def of_host(name: str) -> bool:
    """Whether a property is one of the host."""
    return name.startswith(_OF_HOST)


def variables(
    record: RunRecord, per_run: frozenset[str], derived_settings: Mapping[str, frozenset[str]]
) -> Iterator[Reading]:
    """The server's effective variables, without those that are each run's own.

    `follows`: dotted key → variables that a server derives from what the key sets.
    """
    by_variable: dict[str, set[str]] = {}
    for key, derived in derived_settings.items():
        for name in derived:
            by_variable.setdefault(name, set()).add(normal_key(key))
    for name, value in (record.effective or {}).items():
        if name not in per_run:
            own = {normal_key(f"sut.settings.{name}"), "sut.image", "sut.database"}
            yield Reading(f"variable {name}", value, frozenset(own | by_variable.get(name, set())))


def parent_cgroup(cgroups: Mapping[str, str]) -> str | None:
    """The parent in the hierarchies that hand out CPU, memory and I/O, with RUN for the run's own name.

    The root of a hierarchy is its own parent. Where hierarchies disagree, each is named.
    """
    parents: dict[str, list[str]] = {}
    for names, path in cgroups.items():
        if _CONTROLLERS & set(names.split(",")) or (not names and len(cgroups) == 1):
            parent = path.rstrip("/").rpartition("/")[0] or "/"
            parents.setdefault(TOKEN.sub("RUN", _UID.sub("podUID", parent)), []).append(names)
    if len(parents) < 2:
        return next(iter(parents), None)
    return ", ".join(f"{parent} ({'+'.join(sorted(names))})" for parent, names in sorted(parents.items()))


def normal_key(key: str) -> str:
    """Servers take `innodb-x` for `innodb_x` and any case, and report one of them, in a spelling of their own."""
    head, settings, name = key.partition("sut.settings.")
    return f"{head}{settings}{name.replace('-', '_').lower()}" if settings else key
