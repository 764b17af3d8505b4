"""Whether limits, control group and network path in force are what the study declares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tare.deployments import CONTAINERD, POD
from tare.deployments.containerd.client import NAMESPACE
from tare.deployments.defaults import cpu_shares
from tare.record.made_by import ContainerdFacts
from tare.record.measurement import Encryption
from tare.record.network_path import Hop, NetworkPath
from tare.record.observation import Observation, Parity
from tare.run.parity.properties import NAMES, parent_cgroup
from tare.storage import DataMount
from tare.study.model import ArmSettings, LimitsSpec, Placement, StorageSpec, SutSpec
from tare.study.rules.placement import REACHES_OTHERS, SERVES_OTHERS
from tare.study.values import (
    POD_NETWORKS,
    SERVICE_NETWORKS,
    CgroupPlace,
    NetworkKind,
    Qos,
    cpu_set,
    size_bytes,
)

_NO_FILTER, _FILTER = "0", "2"
"""SECCOMP_MODE_* of include/uapi/linux/seccomp.h, as in /proc/PID/status."""
_SYS_ADMIN = 21
"""CAP_SYS_ADMIN, which no engine grants by default (include/uapi/linux/capability.h)."""
_KUBEPODS = re.compile(r"/kubepods(?:\.slice)?/")
_GUESTS = {NetworkKind.USER: Hop.USER, NetworkKind.TAP: Hop.TAP}
_BETWEEN = {
    NetworkKind.HOST: frozenset({Hop.WIRE}),
    NetworkKind.BRIDGE: frozenset({Hop.BRIDGE}),
    NetworkKind.MACVLAN: frozenset({Hop.MACVLAN}),
    NetworkKind.IPVLAN: frozenset({Hop.IPVLAN}),
}
"""Hops to a SUT that a client on another host reaches without a published port."""
_ROOTLESS = {
    NetworkKind.ROOTLESSPORT: Hop.ROOTLESSPORT,
    NetworkKind.SLIRP4NETNS: Hop.SLIRP4NETNS,
    NetworkKind.PASTA: Hop.PASTA,
}
_PODS = {
    NetworkKind.POD: Hop.BRIDGE,
    NetworkKind.HOST_PORT: Hop.DNAT,
    NetworkKind.CLUSTER_IP: Hop.DNAT,
    NetworkKind.NODE_PORT: Hop.DNAT,
}
_CARRIED = frozenset({Hop.DOCKER_PROXY, Hop.DNAT})
"""A published port is served by either, depending on the engine (`--userland-proxy`) and on where the client runs.
The hop is recorded, and must be the same in every run of an arm."""


def undeclared(settings: ArmSettings, parity: Parity, path: NetworkPath | None, token: str) -> tuple[str, ...]:
    """List what is not as declared, a sentence each; `token` is part of the name of the run's own control group."""
    mismatches = [
        f"{NAMES[side]}: {what}"
        for side, placement in settings.sides.items()
        for what in _side(placement, parity.of(side), token)
    ]
    of_machine, of_pod = _machine(settings, parity.sut), _pod(settings, parity.sut)
    return (*mismatches, *of_machine, *of_pod, *_hop(settings, path))


def undeclared_peers(
    settings: ArmSettings, node: str, peers: Mapping[str, NetworkPath | None] | None
) -> tuple[str, ...]:
    """List the peers that a node on a host of its own reaches by another path than its network promises."""
    sut = settings.sut.network
    wanted = promised_between(sut, NetworkKind.HOST)
    names = " or ".join(sorted(each.value for each in wanted))
    return tuple(
        f"network path: network {sut.value} promises {names}, {node} reaches {other} by {hop}"
        for other, path in (peers or {}).items()
        if path is not None and (hop := path.hop) is not None and hop not in wanted
    )


def storage_mismatch(
    spec: StorageSpec, data_mount: DataMount, data_dir: str, seen: Observation | None
) -> tuple[str, ...]:
    """Return a sentence if the SUT's data directory is not on the storage that was made for it.

    Compares file system and device number in the SUT's own mounts (/proc/PID/mountinfo).
    """
    if seen is None or not seen.cgroups:
        return ()
    mount = seen.mounts.get(data_dir)
    promised = data_mount.mismatch(mount)
    if promised is None:
        return ()
    return (
        f"SUT: storage {spec.kind} declared, which is {promised} here; {data_dir} is on {mount or 'nothing known'}",
    )


def promised_hops(sut: NetworkKind, client: NetworkKind) -> frozenset[Hop]:
    """Return the hops by which a client may reach a server, given both networks."""
    if client is NetworkKind.POD and sut is NetworkKind.HOST:
        return frozenset({Hop.BRIDGE})  # out of its own namespace into the node's, at the node's own address
    if sut is NetworkKind.SOCKET:
        return frozenset({Hop.SOCKET})
    if client is NetworkKind.SHARED or sut is NetworkKind.HOST:
        return frozenset({Hop.LOOPBACK})
    if (one := {**_GUESTS, **_ROOTLESS, **_PODS}.get(sut)) is not None:
        return frozenset({one})
    return frozenset({Hop.BRIDGE}) if sut is NetworkKind.BRIDGE else _CARRIED


def promised_between(sut: NetworkKind, client: NetworkKind) -> frozenset[Hop]:
    """Return the hops for a client on another host; none if there is no path."""
    if sut not in SERVES_OTHERS or client not in REACHES_OTHERS:
        return frozenset()
    return _BETWEEN.get(sut, _CARRIED)


def undeclared_encryption(settings: ArmSettings, agreed: Encryption | None) -> tuple[str, ...]:
    """Return a sentence if the measured connections, as the client reports, are not encrypted as declared."""
    if settings.sut.tls and agreed is None:
        return ("connections: TLS declared, the client's are in clear text",)
    if not settings.sut.tls and agreed is not None:
        return (f"connections: no TLS declared, {agreed.version} in force",)
    return ()


def _side(placement: Placement, seen: Observation | None, token: str) -> Iterator[str]:
    if seen is None or not seen.cgroups:
        return  # not observed, or a deployment without control groups (fake): nothing to compare
    limits, cpus = placement.limits, seen.cpus_allowed
    if limits.cpus is not None and cpus is not None and cpu_set(cpus) != cpu_set(limits.cpus):
        yield f"CPU set: {limits.cpus} declared, {cpus} in force"
    quota = seen.cpu_quota
    if limits.cpu_quota != quota and abs((limits.cpu_quota or 0) - (quota or 0)) > 1e-4:
        yield f"CPU quota: {limits.cpu_quota or 'none'} declared, {quota or 'none'} in force"
    if limits.cpu_weight is not None:
        weight = limits.cpu_weight if set(seen.cgroups) == {""} else cpu_shares(limits.cpu_weight)
        if seen.cpu_weight != weight:
            yield f"CPU weight: {limits.cpu_weight} declared ({weight} here), {seen.cpu_weight} in force"
    wanted = None if limits.memory is None else size_bytes(limits.memory)
    memory = seen.memory_bytes
    if wanted is not None and (memory is None or abs(memory - wanted) >= 1 << 16):  # limits are whole pages
        yield f"memory limit: {wanted} declared, {memory or 'none'} in force"
    yield from _more_limits(limits, seen)
    iops = seen.disk_iops
    if limits.disk_iops != iops:
        yield f"disk operations: {limits.disk_iops or 'no limit'} declared, {iops or 'none'} in force"
    yield from _confinement(placement, seen)
    yield from _sysctls(placement, seen.network_settings)
    if placement.deployment == POD:
        yield from _kubelets(seen)
        return
    yield from _by_containerd(placement, seen)
    parent = parent_cgroup(seen.cgroups)
    inside = any(token in path for path in seen.cgroups.values())
    if (placement.cgroup is CgroupPlace.RUN) != inside:
        yield f"parent cgroup: cgroup {placement.cgroup.value} declared, {parent} in force"


def _more_limits(limits: LimitsSpec, seen: Observation) -> Iterator[str]:
    swap, in_force = None if limits.swap is None else size_bytes(limits.swap), str(seen.swap_limit or "none")
    if swap is not None and not (in_force.isdecimal() and abs(int(in_force) - swap) < 1 << 16):  # whole pages
        yield f"swap limit: {swap} declared, {in_force} in force"
    if limits.pids is not None and seen.pids_limit != str(limits.pids):
        yield f"limit of processes: {limits.pids} declared, {seen.pids_limit or 'none'} in force"
    mems = seen.mems_allowed
    if limits.mems is not None and mems is not None and cpu_set(mems) != cpu_set(limits.mems):
        yield f"NUMA nodes of its memory: {limits.mems} declared, {mems} in force"


def _sysctls(placement: Placement, seen: Mapping[str, str] | None) -> Iterator[str]:
    """Check the settings of the network namespace that the study gives."""
    if isinstance(placement, SutSpec) and seen is not None:
        for name, value in placement.sysctls.items():
            wanted, in_force = " ".join(str(value).split()), seen.get(name)
            if in_force != wanted:
                yield f"{name}: {wanted} declared, {in_force or 'nothing'} in force"


def _by_containerd(placement: Placement, seen: Observation) -> Iterator[str]:
    """Check the containerd namespace, which the command line of the program's shim names."""
    facts = seen.containerd or ContainerdFacts()
    if placement.deployment == CONTAINERD and facts.namespace != NAMESPACE:
        holder = f"{facts.shim or 'no shim'}, namespace {facts.namespace or 'unknown'}"
        yield f"containerd: a container in its namespace {NAMESPACE} declared, held by {holder}"


def _kubelets(seen: Observation) -> Iterator[str]:
    """Check that a cluster's pod is in kubelet's control groups, below those of its QoS class."""
    qos = seen.pod and seen.pod.qos
    wanted = "" if qos == Qos.GUARANTEED else str(qos or "").replace("-", "")
    if not any(_KUBEPODS.search(path) and wanted in path for path in seen.cgroups.values()):
        where = parent_cgroup(seen.cgroups)
        yield f"parent cgroup: a pod of the class {qos} declared, {where} in force"


def _confinement(placement: Placement, seen: Observation) -> Iterator[str]:
    """Check the process's own status: seccomp mode, bounding capabilities, `NoNewPrivs`."""
    asked = placement.confinement
    if asked.seccomp != "default" and seen.seccomp != (
        wanted := _NO_FILTER if asked.seccomp == "unconfined" else _FILTER
    ):
        yield f"seccomp: {asked.seccomp} declared (mode {wanted}), mode {seen.seccomp} in force"
    bounds = seen.capabilities
    if asked.capabilities == "none" and (bounds is None or int(bounds, 16)):
        yield f"capabilities: none declared, {bounds} in force"
    if asked.capabilities == "all" and (bounds is None or not int(bounds, 16) >> _SYS_ADMIN & 1):
        yield f"capabilities: all declared, {bounds} in force"
    if asked.no_new_privileges and seen.no_new_privileges != "1":
        yield f"no_new_privileges: declared, {seen.no_new_privileges} in force"


def _machine(settings: ArmSettings, seen: Observation | None) -> Iterator[str]:
    inside = seen and seen.guest
    if settings.sut.vm is None or inside is None:
        return
    asked = settings.sut.vm
    pairs = (("disk cache", asked.cache, inside.disk_cache), ("disk I/O engine", asked.aio, inside.disk_aio))
    for name, wanted, actual in pairs:
        if actual != wanted:  # `None` for disks that differ or could not be read
            yield f"SUT: {name}: {wanted} declared, {actual or 'none for all of its disks'} in force"
    threads = inside.cpu_threads or (None,)
    pinned = all(cpus is not None and len(cpu_set(cpus)) == 1 for cpus in threads)
    if settings.sut.vm.pin and not pinned:
        cpu_sets = " and ".join(cpus or "unknown ones" for cpus in threads)
        yield f"SUT: pinned virtual CPUs declared, their threads may use the CPUs {cpu_sets}"


def _pod(settings: ArmSettings, seen: Observation | None) -> Iterator[str]:
    """Check namespaces, rules and control groups of a pod, as the kernel has them."""
    spec, pod = settings.sut.pod, seen and seen.pod
    if spec is None or pod is None:
        return
    network = settings.sut.network
    if settings.sut.deployment == POD:
        if spec.qos is not None and pod.qos != spec.qos:
            yield f"SUT: class {spec.qos.value} declared, the cluster gave it {pod.qos or 'none'}"
        return
    held = set((pod.held_by_sandbox or "").split(","))
    wanted = {"ipc"} if network is NetworkKind.HOST else {"ipc", "net"}
    if not wanted <= held:
        yield f"SUT: a pod declared, but its sandbox holds {pod.held_by_sandbox or 'no namespace'} of it"
    kind = {"bridge": "veth"}.get(spec.cni, spec.cni)
    if network in POD_NETWORKS and pod.interface != kind:
        yield f"SUT: cni {spec.cni} declared (an interface of kind {kind}), {pod.interface} in force"
    if network in SERVICE_NETWORKS and pod.services != spec.services:
        yield f"SUT: {spec.services} Services declared, {pod.services} in the kernel's rules"
    if spec.qos is None:
        return
    place = "/kubepods/" if spec.qos is Qos.GUARANTEED else f"/kubepods/{spec.qos.value.replace('-', '')}/"
    if not any(f"{place}pod" in path for path in (seen.cgroups if seen else {}).values()):
        yield f"SUT: class {spec.qos.value} declared, its group is not in {place}"


def _hop(settings: ArmSettings, path: NetworkPath | None) -> Iterator[str]:
    if settings.client is None or path is None:
        return
    sut, client = settings.sut.network, settings.client.network
    wanted = promised_hops(sut, client) if path.wire is None else promised_between(sut, client)
    names = " or ".join(sorted(each.value for each in wanted))
    if path.hop is None:
        if path.connections > 1:
            yield f"network path: the client's {path.connections} connections take several paths, not only {names}"
        return
    if path.hop not in wanted:
        yield f"network path: network {sut.value} promises {names}, the connections take {path.hop}"
    bind = settings.sut.bind
    if bind is not None and path.client_dialled is not None and path.client_dialled.address != bind:
        yield f"network path: bind {bind} declared, the client dialled {path.client_dialled.address}"
    if path.wire is not None and (path.client_hop is Hop.MASQUERADE) != (client is NetworkKind.BRIDGE):
        how = path.client_hop or "its host's own address"
        yield f"network path: the client's network {client.value} is declared, its connections leave by {how}"
