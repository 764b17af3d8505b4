"""Rules for placements of SUT and client: networks, storages, virtual machines, clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tare.deployments import CONTAINERD, MACHINES, POD
from tare.monitors import ONE_CONTAINER
from tare.study.model import ArmSettings, ClientSpec, Placement, StorageSpec, SutSpec, VmSpec
from tare.study.protocol_spec import DuetSpec, Repetition
from tare.study.reading.document import Document, KeyPath
from tare.study.registry import Usable
from tare.study.rules.cluster_pods import refuse_cluster_pod
from tare.study.rules.containerd import refuse_containerd
from tare.study.rules.limits import refuse_limits
from tare.study.rules.pods import refuse_pod
from tare.study.rules.refusal import Refusal
from tare.study.rules.socket import refuse_bind, refuse_socket_placement
from tare.study.values import IN_HOST, OWN_ADDRESS, ROOTLESS_NETWORKS, CgroupPlace, NetworkKind
from tare.workloads import Parameters

SERVES_OTHERS = frozenset({NetworkKind.HOST, NetworkKind.BRIDGE, NetworkKind.PUBLISHED_ADDRESS, *OWN_ADDRESS})
"""SUT networks that other hosts reach; `bridge` if they have a route, which a run checks."""
REACHES_OTHERS = frozenset({NetworkKind.HOST, NetworkKind.BRIDGE})
"""Client networks from which another host is reachable."""
_PUBLISHED = frozenset({NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS, *ROOTLESS_NETWORKS})
_ON_LOOPBACK = frozenset({NetworkKind.HOST, NetworkKind.PUBLISHED_LOOPBACK, *ROOTLESS_NETWORKS})
_ROOTLESS = "podman-rootless"


_FOR_ALL = frozenset({"kind", "cache"})
_NETWORKS = frozenset({NetworkKind.USER, NetworkKind.TAP})
_DIRECT = frozenset({"none", "directsync"})
"""Cache modes in which QEMU opens the disk's file with O_DIRECT (qemu(1), -drive cache=)."""
_DEPLOYMENT: KeyPath = ("sut", "deployment")
_SWAPPED = "a virtual machine cannot swap CPUs while it runs, as a duet does"
_NODES: KeyPath = ("sut", "nodes")
_OF_ENGINE = ("engine", "runtime", "confinement")


def refuse_placement(
    sut: SutSpec, client: ClientSpec | None, *, sut_isolates: bool, client_isolates: bool
) -> Refusal | None:
    """Return the reason why the two cannot be placed so; `None` if they can. `client`: `None` if there is none.

    `…_isolates`: whether the side's deployment can have a network namespace of its own.
    """
    if (
        without := refuse_socket_placement(sut, client) or refuse_bind(sut, client) or refuse_limits(sut, client)
    ) is not None:
        return without
    if (pod := refuse_pod(sut, client) or refuse_cluster_pod(sut, client)) is not None:
        return pod
    if (own := refuse_containerd(sut, client)) is not None:
        return own
    if client is None:
        return (
            _engine("sut", sut, has_one=sut_isolates)
            or _cgroup("sut", sut, bare=not sut_isolates)
            or _sut_alone(sut, isolates=sut_isolates)
        )
    return (
        _engine("sut", sut, has_one=sut_isolates)
        or _engine("client", client, has_one=client_isolates)
        or (_engines_apart(sut, client) if sut_isolates and client_isolates else None)
        or _cgroup("sut", sut, bare=not sut_isolates)
        or _cgroup("client", client, bare=not client_isolates)
        or _sut_alone(sut, isolates=sut_isolates)
        or _client_alone(client, isolates=client_isolates)
        or _pair(sut, client)
    )


def _engine(side: str, placed: Placement, *, has_one: bool) -> Refusal | None:
    """Refuse engine, runtime or confinement for a side that no engine makes."""
    usual = Placement(image=placed.image, deployment=placed.deployment)
    differing = [key for key in _OF_ENGINE if getattr(placed, key) != getattr(usual, key)]
    if differing and not (has_one and placed.deployment not in MACHINES | {POD, CONTAINERD}):
        why = f"`{placed.deployment}` is not made by an engine"
        return Refusal(
            ((side, differing[0]), (side, "deployment")), why, f"leave `{differing[0]}` out, or use `container`"
        )
    if placed.runtime is not None and (placed.engine or "docker") != "docker":
        why = f"`{placed.engine}` uses one runtime for all containers of a service"
        return Refusal(((side, "runtime"), (side, "engine")), why, "leave `runtime` out, or use Docker")
    return _rootless(side, placed)


def _rootless(side: str, placed: Placement) -> Refusal | None:
    """Refuse networks that do not fit a rootless engine: the host has no route to its own networks."""
    keys = ((side, "network"), (side, "engine"))
    if placed.network in ROOTLESS_NETWORKS and placed.engine != _ROOTLESS:
        why = f"`{placed.network}` is a network of rootless Podman"
        return Refusal(keys, why, f"use `engine: {_ROOTLESS}`, or another network")
    ours = {NetworkKind.HOST, *ROOTLESS_NETWORKS}
    if placed.engine == _ROOTLESS and placed.deployment not in MACHINES and placed.network not in ours:
        why = f"the host has no route to `{placed.network}` of rootless Podman"
        return Refusal(keys, why, f"use {', '.join(sorted(ours)[:-1])} or {max(ours)}")
    return None


def _engines_apart(sut: SutSpec, client: Placement) -> Refusal | None:
    """Refuse a shared network of two engines: each has networks and namespaces of its own."""
    if sut.engine == client.engine or client.network not in {NetworkKind.BRIDGE, NetworkKind.SHARED}:
        return None
    if CONTAINERD in {sut.deployment, client.deployment}:
        return None  # containerd's tasks belong to no engine and join any namespace
    keys = (("client", "engine"), ("sut", "engine"), ("client", "network"))
    why = f"client and SUT use two engines, which share no network (`{client.network}`)"
    return Refusal(keys, why, "give both the same `engine`, or use `client.network: host`")


def _cgroup(side: str, placed: Placement, *, bare: bool) -> Refusal | None:
    """Refuse the root control group for tasks that an engine places, or with limits."""
    if placed.cgroup is not CgroupPlace.ROOT:
        return None
    keys = ((side, "cgroup"), (side, "deployment"))
    if not bare:
        return Refusal(keys, f"`{placed.deployment}` cannot be in the root cgroup", "use `cgroup: run`, or bare")
    if placed.limits.in_cgroups:
        keys = ((side, "cgroup"), (side, "limits"))
        return Refusal(keys, "the root cgroup cannot have limits", "use `cgroup: run`, or leave the limits out")
    return None


def _sut_alone(sut: SutSpec, *, isolates: bool) -> Refusal | None:
    keys = (("sut", "network"), ("sut", "deployment"))
    if sut.sysctls and (sut.deployment != "container" or sut.network in IN_HOST or sut.pod is not None):
        at: tuple[KeyPath, ...] = (("sut", "sysctls"), *keys)
        why = f"tare sets no sysctls for `{sut.deployment}` on `{sut.network}`: they would be those of the host"
        if sut.pod is not None:
            why = "tare sets no sysctls for a container in a pod, whose sandbox has the network namespace"
        return Refusal(at, why, "use `deployment: container` with a network of its own, such as `bridge`")
    if sut.network is NetworkKind.SHARED:
        return Refusal(keys, "the SUT has no other namespace to share", "`shared` is for the client")
    if sut.network is NetworkKind.UNTRACKED:
        return _untracked(sut)
    if sut.network not in IN_HOST and not isolates:
        why = f"`{sut.deployment}` has no network namespace, so it cannot be on `{sut.network}`"
        return Refusal(keys, why, "use `host`, or another deployment")
    return None


def _untracked(sut: SutSpec) -> Refusal | None:
    keys = (("sut", "network"), ("sut", "deployment"))
    if sut.deployment != "bare":
        why = f"`untracked` is a baseline for bare, and the SUT is `{sut.deployment}`"
        return Refusal(keys, why, "use `sut.deployment: bare`, or `host`")
    if sut.nodes > 1:
        why = f"{sut.nodes} nodes would each be alone in a namespace"
        return Refusal((("sut", "nodes"), ("sut", "network")), why, "use one node, or `sut.network: host`")
    return None


def _with_untracked(client: ClientSpec) -> Refusal | None:
    if (client.network, client.deployment) == (NetworkKind.SHARED, "bare"):
        return None
    keys = (("client", "network"), ("sut", "network"), ("client", "deployment"))
    why = "nothing outside reaches the namespace of `sut.network: untracked`"
    return Refusal(keys, why, "use a bare client with `client.network: shared`")


def _client_alone(client: Placement, *, isolates: bool) -> Refusal | None:
    keys = (("client", "network"), ("client", "deployment"))
    if client.network is NetworkKind.UNTRACKED:
        return Refusal(keys, "`untracked` is for the SUT", "use `client.network: shared`, which joins it")
    if client.network in OWN_ADDRESS:
        return Refusal(keys, f"`{client.network.value}` is for the SUT", "use host or bridge for the client")
    if client.network in _PUBLISHED:
        return Refusal(keys, "a client has no port to publish", "use host, bridge or shared")
    if client.network is NetworkKind.BRIDGE and not isolates:
        why = f"`{client.deployment}` has no network namespace, so it cannot be on `bridge`"
        return Refusal(keys, why, "use host or shared, or another deployment")
    return None


def _pair(sut: SutSpec, client: ClientSpec) -> Refusal | None:
    keys = (("client", "network"), ("sut", "network"))
    if client.own_host or sut.network is NetworkKind.UNTRACKED:
        return _apart(sut, client) if client.own_host else _with_untracked(client)
    if sut.network in OWN_ADDRESS:
        why = (
            f"a host cannot reach its own containers on `{sut.network.value}`, and the client may run on that host"
        )
        keys = (("sut", "network"), ("client", "own_host"))
        return Refusal(keys, why, "set `client.own_host: true`, or use `sut.network: bridge`")
    if client.network is NetworkKind.SHARED and sut.network is NetworkKind.HOST:
        why = "the SUT is in the host's namespace and has no other to share"
        return Refusal(keys, why, "use `host` for the client, or `sut.network: bridge`")
    if client.network is NetworkKind.SHARED and sut.network in _PUBLISHED:
        why = f"a client in the SUT's namespace bypasses the port of `{sut.network}`"
        hint = "`client.network: host`" if sut.network in ROOTLESS_NETWORKS else "`sut.network: bridge`"
        return Refusal(keys, why, f"use {hint} with it")
    if client.network is NetworkKind.BRIDGE and sut.network in _ON_LOOPBACK:
        why = f"from another namespace, the client cannot reach the host's 127.0.0.1 (`{sut.network}`)"
        return Refusal(keys, why, "use `client.network: host`, or `sut.network: bridge`")
    return None


def _apart(sut: SutSpec, client: ClientSpec) -> Refusal | None:
    """Refuse networks between a SUT and a client on another host."""
    for side, placed, far in (("sut", sut, SERVES_OTHERS), ("client", client, REACHES_OTHERS)):
        if placed.network not in far:
            why = f"`{placed.network.value}` reaches no other host, and `own_host` puts the client on one"
            hint = f"use {' or '.join(sorted(each.value for each in far))}"
            return Refusal(((side, "network"), ("client", "own_host")), why, f"{hint}, or leave `own_host` out")
    return None


def refuse_storage(sut: SutSpec, usable: Usable) -> Refusal | None:
    """Return the reason why the SUT cannot have its storage so; `None` if it can."""
    storage = sut.storage
    if sut.engine == _ROOTLESS and storage.kind != "bind":
        why = f"a rootless engine cannot use the storage `{storage.kind}`, which only root can make"
        return Refusal((("sut", "storage", "kind"), ("sut", "engine")), why, "use `bind`, or another engine")
    if usable.deployments is not None and sut.deployment not in usable.deployments:
        names = " or ".join(f"`{name}`" for name in sorted(usable.deployments))
        why = f"the storage `{storage.kind}` is not available for `{sut.deployment}`"
        if usable.by_engine:
            why = f"`{sut.deployment}` has no engine to provide the storage `{storage.kind}`"
        keys = (("sut", "storage", "kind"), ("sut", "deployment"))
        return Refusal(keys, why, f"use {names} for the SUT, or another storage")
    usual = StorageSpec()
    for key in StorageSpec.model_fields:
        if key in _FOR_ALL or key in usable.options or getattr(storage, key) == getattr(usual, key):
            continue
        why = f"`{key}` has no effect on the storage `{storage.kind}`"
        return Refusal((("sut", "storage", key), ("sut", "storage", "kind")), why, "leave it out")
    if storage.kind == "nfs" and sut.limits.disk_iops is not None:
        why = "the disk of the storage `nfs` belongs to its server, outside the SUT's limits"
        at = (("sut", "limits", "disk_iops"), ("sut", "storage", "kind"))
        return Refusal(at, why, "leave `disk_iops` out, or use another storage")
    if storage.device is not None and storage.size is not None:
        clash = (("sut", "storage", "size"), ("sut", "storage", "device"))
        return Refusal(clash, "a given device already has a size", "leave `size` out")
    return _claim(storage)


def _claim(storage: StorageSpec) -> Refusal | None:
    if storage.kind != "claim" or storage.storage_class is not None:
        return None
    why = "a volume claim needs a storage class of the cluster, and none is named"
    hint = "set `storage_class`; see `kubectl get storageclasses`"
    return Refusal((("sut", "storage", "kind"),), why, hint)


def vm_settings(sut: SutSpec) -> VmSpec | None:
    """Return the SUT's virtual machine, with defaults; `None` for a SUT in no machine."""
    return sut.vm or VmSpec() if sut.deployment in MACHINES else None


def refuse_machine(sut: SutSpec, client: Placement | None, protocol: Repetition) -> Refusal | None:
    """Return the first reason why these do not go together; `None` if they do."""
    return next(_machine_faults(sut, client, protocol), None)


def _machine_faults(sut: SutSpec, client: Placement | None, protocol: Repetition) -> Iterator[Refusal]:
    if client is not None and client.deployment in MACHINES:
        yield from _client_machine_faults(sut, client, protocol)
    elif client is not None and client.network in _NETWORKS:
        why = f"`{client.network}` is for virtual machines, and the client is not in one"
        yield Refusal((("client", "network"),), why, "use host, bridge or shared for the client")
    if sut.deployment in MACHINES:
        yield from _sut_machine_faults(sut, client, protocol)
        return
    if sut.network in _NETWORKS:
        keys: tuple[KeyPath, ...] = (("sut", "network"), _DEPLOYMENT)
        why = f"`{sut.network}` is for virtual machines, and `{sut.deployment}` is not one"
        yield Refusal(keys, why, "use `deployment: vm` or `vm-container`, or another network")
    if sut.vm is not None:
        given: list[KeyPath] = [("sut", "vm", key) for key in sorted(sut.vm.model_fields_set)]
        why = f"`vm` has no effect on the deployment `{sut.deployment}`"
        yield Refusal((*given, ("sut", "vm"), _DEPLOYMENT), why, "leave it out")


def _client_machine_faults(sut: SutSpec, client: Placement, protocol: Repetition) -> Iterator[Refusal]:
    """Check a client in a virtual machine: QEMU's user network reaches all that the host does, a tap does not."""
    network, deployment = ("client", "network"), ("client", "deployment")
    if client.network is not NetworkKind.USER:
        why = f"a client in a virtual machine cannot reach any server on `{client.network}`"
        yield Refusal((network, deployment), why, "use `client.network: user`")
    if client.limits.memory is None:
        why = "a virtual machine needs a memory size, and the client has no memory limit"
        yield Refusal((("client", "limits", "memory"), deployment), why, "set `client.limits.memory` for all arms")
    if sut.nodes > 1:
        why = f"a client in a virtual machine sees one address of its host, not the addresses of {sut.nodes} nodes"
        yield Refusal((deployment, ("sut", "nodes")), why, "use a client that is bare or in a container")
    if isinstance(protocol, DuetSpec):
        yield Refusal((deployment, ("protocol", "name")), _SWAPPED, "use `interleave`")


def _sut_machine_faults(sut: SutSpec, client: Placement | None, protocol: Repetition) -> Iterator[Refusal]:
    network: KeyPath = ("sut", "network")
    if client is None:
        why = "a program that needs no database cannot be placed in a virtual machine"
        yield Refusal((_DEPLOYMENT,), why, "use bare or container")
    if sut.network not in _NETWORKS:
        why = f"a virtual machine has its own network, so it cannot be on `{sut.network}`"
        yield Refusal((network, _DEPLOYMENT), why, "use `network: user` or `network: tap`")
    if sut.limits.memory is None:
        why = "a virtual machine needs a memory size, and the SUT has no memory limit"
        yield Refusal((("sut", "limits", "memory"), _DEPLOYMENT), why, "set `sut.limits.memory` for all arms")
    if client is not None and client.network not in {NetworkKind.HOST, NetworkKind.USER}:
        why = f"a client on `{client.network}` cannot reach a virtual machine"
        yield Refusal((("client", "network"), _DEPLOYMENT), why, "use `client.network: host`")
    if sut.nodes > 1:
        why = f"{sut.nodes} virtual machines would have separate networks and could not reach each other"
        yield Refusal((("sut", "nodes"), _DEPLOYMENT), why, "use bare or container, or one node")
    yield from _disk_faults(sut, vm_settings(sut) or VmSpec())
    if isinstance(protocol, DuetSpec):
        yield Refusal((_DEPLOYMENT, ("protocol", "name")), _SWAPPED, "use `interleave`")


def _disk_faults(sut: SutSpec, vm: VmSpec) -> Iterator[Refusal]:
    aio, cache, kind = ("sut", "vm", "aio"), ("sut", "vm", "cache"), ("sut", "storage", "kind")
    if vm.aio == "native" and vm.cache not in _DIRECT:
        why = f"`aio: native` must bypass the host's page cache, which `cache: {vm.cache}` uses"
        yield Refusal((aio, cache), why, "use `cache: none` or `directsync`, or `aio: threads`")
    if sut.limits.disk_iops is not None and vm.cache not in _DIRECT:
        why = (
            f"with `cache: {vm.cache}`, the host's page cache does the writing, outside every control group's limit"
        )
        yield Refusal((cache, ("sut", "limits", "disk_iops")), why, "use `cache: none` or `directsync`")
    if sut.storage.kind == "tmpfs" and vm.cache in _DIRECT:
        why = f"`cache: {vm.cache}` opens the disk with O_DIRECT, which tmpfs does not support on every kernel"
        yield Refusal((cache, kind), why, "use `cache: writeback`")
    if sut.storage.cache == "warmed":
        why = "the page cache that matters is the machine's own, which starts empty"
        yield Refusal((("sut", "storage", "cache"), _DEPLOYMENT), why, "use `cache: dropped`")


def refuse_cluster(settings: ArmSettings, parameters: Parameters, clusters: Collection[str]) -> Refusal | None:
    """Return the first reason why an arm cannot have its nodes so; `None` if it can.

    `clusters`: databases that can form a cluster.
    """
    return next(_cluster_faults(settings, parameters, clusters), None)


def _cluster_faults(settings: ArmSettings, parameters: Parameters, clusters: Collection[str]) -> Iterator[Refusal]:
    sut, client = settings.sut, settings.client
    replicas = parameters.replicas
    if replicas is not None and replicas > sut.nodes:
        keys: tuple[KeyPath, ...] = (("workload",), _NODES)
        why = f"the workload needs {replicas} replicas of each row, and the SUT has {_nodes_in_words(sut.nodes)}"
        yield Refusal(keys, why, f"set `sut.nodes: {replicas}`, or ask for fewer")
    if sut.nodes == 1:
        return
    names = " or ".join(f"`{name}`" for name in sorted(clusters))
    if sut.database not in clusters:
        what = f"`{sut.database}`" if sut.database else f"the program of `{settings.workload_name}`"
        keys = (_NODES, ("sut", "database"))
        yield Refusal(keys, f"{what} runs as one server, not as a cluster", f"leave `nodes` out, or use {names}")
    if sut.network in _PUBLISHED:
        why = f"nodes send clients to each other's own addresses, which bypass the ports of `{sut.network.value}`"
        yield Refusal((("sut", "network"), _NODES), why, "use `host` or `bridge` for the SUT")
    if sut.network in OWN_ADDRESS:
        why = f"a host has one address for a container on `{sut.network.value}`, and the SUT has {sut.nodes} nodes"
        yield Refusal((("sut", "network"), _NODES), why, "use `host` or `bridge` for the SUT")
    if client is not None and client.network is NetworkKind.SHARED:
        why = f"{sut.nodes} nodes have no common network namespace for a client to share"
        yield Refusal((("client", "network"), _NODES), why, "use `host` or `bridge` for the client")
    if sut.storage.device is not None:
        why = f"{sut.nodes} nodes cannot all have their data on {sut.storage.device}"
        hint = "leave `device` out, then each node has its own loop device; or use bind, volume, tmpfs or layer"
        yield Refusal((("sut", "storage", "device"), _NODES), why, hint)
    for name in sorted(ONE_CONTAINER & set(settings.monitors)):
        why = f"`{name}` watches one container, and the SUT has {sut.nodes} nodes"
        hint = "leave it out: the probe, which every run has, watches each node"
        yield Refusal((("monitors", name), _NODES), why, hint)


def _nodes_in_words(nodes: int) -> str:
    return "one node" if nodes == 1 else f"{nodes} nodes"


def check_program(document: Document, workload: str) -> None:
    """Raise `StudyError` for keys without effect if there is neither a database nor a client."""
    tree = document.tree
    raw = tree.get("sut")
    sut: Mapping[str, object] = raw if isinstance(raw, Mapping) else {}
    if tree.get("client") is not None:
        hint = "leave `client` out, and place the program under `sut`"
        raise document.error(("client",), f"{workload} is itself the SUT and has no client", hint=hint)
    for key in ("database", "settings"):
        if sut.get(key) is not None:
            where: KeyPath = ("sut", key)
            raise document.error(where, f"{workload} needs no database", hint=f"leave `sut.{key}` out")
    if sut.get("network", NetworkKind.HOST) != NetworkKind.HOST:
        what = f"nothing talks to {workload} over a network, so its network would have no effect"
        raise document.error(("sut", "network"), what, hint="leave `sut.network` out")
