"""Properties compared before two runs count as comparable: each by name, with its value in a record.

A property lists the dotted keys of a study that vary it: if a factor names one of them, the difference is intended;
any other difference is an accident. docs/concepts/parity.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tare.deployments import CONTAINERD, POD, SOCKET_DIR
from tare.deployments.cgroup.hierarchy import limited
from tare.record.between import Route
from tare.record.host_facts import HostFacts
from tare.record.image_facts import ImageFacts
from tare.record.made_by import GuestFacts, known
from tare.record.node import NodeFacts
from tare.record.observation import Observation
from tare.record.run_record import RunRecord
from tare.run.parity.surroundings import SURROUNDINGS

SIDES = ("sut", "client")
NAMES = {"sut": "SUT", "client": "client"}

_OF_KUBELET = frozenset({"shm", "seccomp", "speculation", "capabilities", "cgroup"})
BY_NATURE: Mapping[frozenset[str], frozenset[str]] = {
    **{frozenset({POD, other}): _OF_KUBELET for other in ("bare", "container", CONTAINERD, "vm", "vm-container")},
    frozenset({"bare", "container"}): frozenset({"shm", "seccomp", "speculation", "capabilities"}),
    frozenset({"bare", "vm"}): frozenset({"shm", "speculation", "capabilities"}),
    frozenset({"container", "vm"}): frozenset({"shm", "seccomp", "speculation", "capabilities"}),
    frozenset({"bare", "vm-container"}): frozenset({"shm", "seccomp", "speculation", "capabilities"}),
    frozenset({"container", "vm-container"}): frozenset({"speculation", "capabilities"}),
    frozenset({"bare", CONTAINERD}): frozenset({"shm", "seccomp", "speculation", "capabilities"}),
    frozenset({"container", CONTAINERD}): frozenset({"capabilities"}),
    frozenset({CONTAINERD, "vm"}): frozenset({"shm", "seccomp", "speculation", "capabilities"}),
    frozenset({CONTAINERD, "vm-container"}): frozenset({"speculation", "capabilities"}),
    frozenset({"vm", "vm-container"}): frozenset({"shm", "seccomp", "speculation", "capabilities"}),
}
"""Properties that necessarily differ between two deployments: an engine's seccomp filter, capabilities and
/dev/shm, the speculation controls that kernels before 5.16 tie to seccomp (commit 2f46993d83ff), those of a virtual
machine's own kernel, and kubelet's control groups with weight and oom_score_adj of the pod's QoS class.
Namespaces and the last part of a control group's path are unique to each run, so they are never compared."""

_SECCOMP = ("engine", "runtime", "confinement.seccomp", "confinement.no_new_privileges")
LATER = (*(f": {each.name}" for each in SURROUNDINGS), ": capabilities", ": no new privileges", ": user namespace")
"""Name endings of properties that records from before 0.2 lack."""
_RIGHTS = {"capabilities": "capabilities", "no_new_privileges": "no new privileges"}
_POD = {
    "held_by_sandbox": ("pod.sandbox", "network"),
    "interface": ("pod.cni", "network"),
    "proxy": ("pod.proxy", "network"),
    "services": ("pod.services", "network"),
    "rules": ("pod.services", "pod.proxy", "network"),
    "qos": ("deployment", "pod.qos"),
    "storage_class": ("deployment", "storage.kind", "storage.storage_class"),
    **dict.fromkeys(("node", "kubelet", "runtime", "cpu_manager"), ("deployment",)),
    "kubelet_oom_score_adj": ("pod.qos", "pod.memory_request"),
}
"""Compared properties of two pods, and the keys that vary them; `_POD_KEYS` vary whether there is a pod."""
_POD_KEYS = ("pod.sandbox", "pod.cni", "pod.proxy", "pod.services", "pod.qos")
_REQUESTED = ("pod.qos", "pod.cpu_request", "pod.memory_request")
_ULIMITS = {"Max open files": ("limits.nofile",), "Max locked memory": ("limits.memlock",)}
_CONTROLLERS = frozenset({"cpu", "cpuacct", "cpuset", "memory", "blkio"})
_STORAGE = ("storage.kind", "storage.file_system", "storage.device", "storage.storage_class")
_ANONYMOUS, _LOOP = "0", "7"
"""Major device numbers (Documentation/admin-guide/devices.txt): unnamed devices, loop devices."""
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
"""Compared properties of two virtual machines, and the keys that vary them."""
TOKEN = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{4}_)?[0-9a-f]{12}(?![0-9a-f])")
"""Token in the names of everything that tare makes for a run."""
ENVIRONMENT = "environment variable "
"""Prefix of the names of these properties."""
NETWORK_SETTING = "network setting "
"""Prefix of the names of these properties, which belong to the network namespace."""
_NAMESPACE = ("network", "deployment", "engine", "runtime", "sysctls", "pod.sandbox", "pod.cni")
_OWN_VARIABLES = frozenset({"HOSTNAME", "container", "TERM"})
"""The run's own name, and what Podman tells a program about its place."""
_OF_CLUSTER = "KUBERNETES_"
"""Prefix of the variables that lead a pod to the API server."""
_UID = re.compile(r"pod[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")
"""A pod's control group, unique to each pod."""
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
    "sched_autogroup": "scheduler groups by session",
    "cpu_numa_balancing": "NUMA balancing",
    "cpu_idle_driver": "CPU idle driver",
    "cpu_mitigations": "mitigations of the CPU",
    "data_filesystem": "file system of the data path",
    "data_source": "device of the data path",
    "data_mount_options": "mount options of the data path",
    "data_io_scheduler": "I/O scheduler of the data path",
    "tare_is_root": "tare runs as root",
    "netfilter_conntrack": "netfilter tracks connections on the loopback device",
    "netfilter_nat_output": "rules in nat OUTPUT",
    "netfilter_nat_prerouting": "rules in nat PREROUTING",
}
"""Facts of the host that affect results and may change during a study."""
_LATER_OF_HOST = frozenset(
    {"netfilter_conntrack", "netfilter_nat_output", "netfilter_nat_prerouting", "proactive_reclaim", "tare_is_root"}
)
"""Facts that are missing, not different, where they were not read: older records lack them, or only root may."""
OF_ARM = (f"{_OF_HOST}{_HOST['netfilter_nat_output']}", f"{_OF_HOST}{_HOST['netfilter_nat_prerouting']}")
"""Beginnings of the names of facts that the run's own deployment may change while it lasts (rules of a Service)."""


_WIRE = {"device": "interface", "gateway": "gateway", "mtu": "MTU", "speed_mbit": "link speed", "qdisc": "queue"}
"""Facts of a host's route; round trips and throughput vary by chance and are only recorded."""


@dataclass(frozen=True)
class Reading:
    """One property of one run. `keys`: dotted study keys, any of which varies it."""

    name: str
    value: Any
    keys: frozenset[str] = frozenset()
    nature: str | None = None
    """Its name in `BY_NATURE`, if deployments may differ in it."""


def readings(record: RunRecord, side: str) -> Iterator[Reading]:
    """Yield what was in force around one side, from its `Observation` and its image."""
    seen, image = record.parity.of(side), record.images.get(side) or ImageFacts()
    label = NAMES[side]

    def one(name: str, value: Any, *keys: str, nature: str | None = None) -> Reading:
        return Reading(f"{label}: {name}", value, frozenset(f"{side}.{key}" for key in keys), nature)

    yield one("image digest", image.digest, "image")
    yield one("emulated CPU", "yes" if side in record.emulated else "no", "deployment")
    if seen is None:
        return
    yield one("binary digest", seen.binary_digest, "image", "database")
    yield one("parent cgroup", parent_cgroup(seen.cgroups), "cgroup", "pod.qos", nature="cgroup")
    yield one("cpu weight", seen.cpu_weight, "cgroup", "limits.cpu_weight", *_REQUESTED, nature="cgroup")
    yield one("CPU set", seen.cpus_allowed, "limits.cpus")
    yield one("CPU quota", seen.cpu_quota, "limits.cpu_quota")
    yield one("memory limit", seen.memory_bytes, "limits.memory")
    yield one("disk operations", seen.disk_iops, "limits.disk_iops")
    yield one("scheduler", seen.scheduler)
    for each in SURROUNDINGS:
        yield from (one(each.name, value, *each.keys, nature=each.nature) for value in each.values(seen))
    yield one("oom_score_adj", seen.oom_score_adj, *_REQUESTED, nature="cgroup")
    yield one("pod", "yes" if seen.pod else "no", "deployment", *_POD_KEYS)
    yield from _made_by(seen, one)
    yield from _confinement(seen, one)
    for name, value in seen.limits.items():
        yield one(f"ulimit {name!r}", value, *_ULIMITS.get(name, ()))
    yield from _environment(seen, one)
    if side == "sut" and record.between is None:  # else hosts may swap, each with settings of its own
        yield from _network_settings(seen, one)
    if seen.guest is not None:
        yield from _machine(seen.guest, one)
    for target, mount in seen.mounts.items():
        if target != SOCKET_DIR:  # the path tells whether it is used
            yield one(f"file system of {target}", lies_on(mount), "image", *_STORAGE)


def _environment(seen: Observation, one: Callable[..., Reading]) -> Iterator[Reading]:
    for name, value in (seen.environment or {}).items():
        if name not in _OWN_VARIABLES and not name.startswith(_OF_CLUSTER):
            yield one(f"{ENVIRONMENT}{name}", value, "image", "database")


def _network_settings(seen: Observation, one: Callable[..., Reading]) -> Iterator[Reading]:
    for name, value in (seen.network_settings or {}).items():
        yield one(f"{NETWORK_SETTING}{name}", value, *_NAMESPACE, f"sysctls.{name}")


def _made_by(seen: Observation, one: Callable[..., Reading]) -> Iterator[Reading]:
    """Yield what surrounds a container that containerd or a cluster made, or that is in a pod."""
    for name, value in known(seen.containerd).items() if seen.containerd else ():
        yield one(f"containerd: {name}", value, "deployment", *(["network"] if name == "interface" else []))
    for name, value in known(seen.pod).items() if seen.pod else ():  # without a QoS class, none is compared
        yield one(f"pod: {name.replace('_', ' ')}", value, *_POD[name])


def _machine(seen: GuestFacts, one: Callable[..., Reading]) -> Iterator[Reading]:
    for name, keys in _GUEST.items():
        value = known(seen.container) if name == "container" and seen.container else getattr(seen, name)
        if value is not None or name != "container":
            yield one(f"virtual machine: {name}", value, "deployment", *keys)


def _confinement(seen: Observation, one: Callable[..., Reading]) -> Iterator[Reading]:
    yield one("seccomp", seen.seccomp, *_SECCOMP, nature="seccomp")
    yield one("speculation controls", seen.speculation, *_SECCOMP, nature="speculation")
    if seen.id_map is not None:  # older records lack it
        yield one("user namespace", seen.id_map, "engine", "deployment")
    for key, name in _RIGHTS.items():
        if (value := getattr(seen, key)) is not None:  # older records lack it
            yield one(name, value, "engine", "runtime", f"confinement.{key}", nature="capabilities")


def lies_on(mount: str) -> str:
    """Drop numbers unique to a mount: `tmpfs 0:57` → `tmpfs`, `ext4 7:3` → `ext4 on a loop device`."""
    fstype, _, device = mount.partition(" ")
    major = device.partition(":")[0]
    if major == _ANONYMOUS:
        return fstype
    return f"{fstype} on a loop device" if major == _LOOP else mount


TLS = "connections: "
"""Prefix of the properties of connections."""


def tls_readings(record: RunRecord) -> Iterator[Reading]:
    """Yield what client and server agreed on; nothing before the measure phase has ended, or in clear text."""
    agreed = record.measurement and record.measurement.encryption
    if agreed is None:
        return
    keys = frozenset({"sut.tls", "sut.image", "sut.database", "client.image", "workload.name"})
    yield Reading(f"{TLS}TLS version", agreed.version, keys)
    yield Reading(f"{TLS}TLS cipher suite", agreed.cipher, keys)


def plugin_readings(record: RunRecord) -> Iterator[Reading]:
    """Yield package and version of each plug-in; no study can vary them."""
    for name, package in (record.plugins or {}).items():
        yield Reading(f"{PLUGIN}{name}", f"{package['package']} {package['version']}")


def host_readings(record: RunRecord) -> Iterator[Reading]:
    """Yield facts of hosts, which no study can vary; facts that older records lack are left out."""
    yield from _facts_of(record.host, "")
    if record.client_host is not None:
        yield from _facts_of(record.client_host, " of the client's host")
    for name, node in _other_nodes(record):
        if node.host is not None:
            yield from _facts_of(node.host, f" of {name}'s host")
    yield from _wire_readings(record)


def _facts_of(host: HostFacts, whose: str) -> Iterator[Reading]:
    for key, name in _HOST.items():
        value = getattr(host, key)
        if value is None and key in _LATER_OF_HOST:
            continue
        if key.startswith("netfilter_nat_"):  # not how many: those of containers beside a study come and go
            value = "some" if value else "none"
        yield Reading(f"{_OF_HOST}{name}{whose}", value)


def _other_nodes(record: RunRecord) -> Iterator[tuple[str, NodeFacts]]:
    """Yield further nodes on hosts of their own."""
    yield from ((name, node) for name, node in list((record.nodes or {}).items())[1:] if node.on is not None)


def _wire_readings(record: RunRecord) -> Iterator[Reading]:
    """Yield, for a run between hosts, which hosts they are and how each reaches the others."""
    between = record.between
    if between is not None:
        for side, host, whose in (("sut", between.sut, "the SUT's"), ("client", between.client, "the client's")):
            yield Reading(f"{_OF_HOST}name of {whose} host", host)
            yield from _way(between.route_of(side), f"of {whose} host to the other")
    for name, node in _other_nodes(record):
        yield Reading(f"{_OF_HOST}name of {name}'s host", node.on)
        yield from _way(between and between.route_of(name), f"of {name}'s host to the client's")
    for link in between.links if between else ():
        yield from _way(link.route, f"of {link.asks} to {link.answers}")


def _way(route: Route | None, whose: str) -> Iterator[Reading]:
    if route is not None:
        yield from (Reading(f"{_OF_HOST}{name} {whose}", getattr(route, key)) for key, name in _WIRE.items())


def of_host(name: str) -> bool:
    """Whether a property is one of a host."""
    return name.startswith(_OF_HOST)


def variables(
    record: RunRecord, per_run: frozenset[str], derived_settings: Mapping[str, frozenset[str]]
) -> Iterator[Reading]:
    """Yield the server's effective variables, except those that are unique to each run.

    `derived_settings`: dotted key → variables that the server derives from what the key sets.
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
    """Return the parent in the hierarchies that control CPU, memory and I/O, with RUN for the run's own name.

    The root of a hierarchy is its own parent. If hierarchies disagree, each is named.
    """
    parents: dict[str, list[str]] = {}
    for names, path in cgroups.items():
        if _CONTROLLERS & set(names.split(",")) or (not names and len(cgroups) == 1):
            parent = limited(path.rstrip("/")).rpartition("/")[0] or "/"
            parents.setdefault(TOKEN.sub("RUN", _UID.sub("podUID", parent)), []).append(names)
    if len(parents) < 2:
        return next(iter(parents), None)
    return ", ".join(f"{parent} ({'+'.join(sorted(names))})" for parent, names in sorted(parents.items()))


def normal_key(key: str) -> str:
    """Normalise a key: servers accept `innodb-x` for `innodb_x` in any case, and report one spelling."""
    head, settings, name = key.partition("sut.settings.")
    return f"{head}{settings}{name.replace('-', '_').lower()}" if settings else key
