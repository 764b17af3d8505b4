"""Rules for pods: their deployment, network and QoS class."""

from __future__ import annotations

from collections.abc import Iterator

from tare.deployments import POD
from tare.study.model import Placement, PodSpec, SutSpec
from tare.study.reading.document import KeyPath
from tare.study.rules.refusal import Refusal
from tare.study.values import POD_NETWORKS, SERVICE_NETWORKS, NetworkKind, Qos, size_bytes

_NETWORK: KeyPath = ("sut", "network")
_QOS: KeyPath = ("sut", "pod", "qos")
_WITHOUT_CNI = frozenset({NetworkKind.HOST, NetworkKind.BRIDGE})


def refuse_pod(sut: SutSpec, client: Placement | None) -> Refusal | None:
    """Return the first reason why the SUT cannot be in its pod so; `None` if it can, or is in none."""
    return next(_faults(sut, client), None)


def _faults(sut: SutSpec, client: Placement | None) -> Iterator[Refusal]:
    pod = sut.pod
    if sut.deployment == POD:
        return  # a cluster's: rules/cluster_pods.py
    if client is not None and client.deployment != POD and client.network in POD_NETWORKS:
        why = f"`{client.network}` is for pods, and the client is not in a pod"
        yield Refusal((("client", "network"),), why, "use `client.network: host`")
    if pod is None:
        if sut.network in POD_NETWORKS:
            why = f"`{sut.network}` is for pods, and the SUT is not in a pod"
            hint = "describe its pod: `sut.pod: {cni: bridge}`, or use `deployment: pod`"
            yield Refusal((_NETWORK,), why, hint)
        return
    given: list[KeyPath] = [("sut", "pod", key) for key in sorted(pod.model_fields_set)]
    if sut.deployment != "container" or sut.engine not in {None, "docker"}:
        what = f"`{sut.deployment}`" if sut.deployment != "container" else f"the engine `{sut.engine}`"
        keys: tuple[KeyPath, ...] = (*given, ("sut", "pod"), ("sut", "deployment"))
        yield Refusal(
            keys, f"{what} cannot make a pod", "use `deployment: container` in Docker, or leave `pod` out"
        )
    if sut.network not in POD_NETWORKS | _WITHOUT_CNI:
        why = f"the engine does not publish the ports of a pod (`{sut.network}`)"
        yield Refusal((_NETWORK, ("sut", "pod")), why, "use `host-port`, `cluster-ip` or `node-port`")
    if client is not None and client.network is not NetworkKind.HOST:
        why = f"the client of a pod runs on the pod's node, not on `{client.network}`"
        yield Refusal((("client", "network"), ("sut", "pod")), why, "use `client.network: host`")
    if sut.nodes > 1:
        why = f"{sut.nodes} pods would need addresses before they are made"
        yield Refusal((("sut", "nodes"), ("sut", "pod")), why, "use one node, or leave `pod` out")
    yield from _network_faults(sut, pod)
    yield from qos_faults(sut, pod)


def _network_faults(sut: SutSpec, pod: PodSpec) -> Iterator[Refusal]:
    usual = PodSpec()
    if pod.cni != usual.cni and sut.network is not NetworkKind.POD:
        why = f"`{sut.network}` needs a node that forwards to the pod, and `{pod.cni}` has none"
        yield Refusal((("sut", "pod", "cni"), _NETWORK), why, "use `network: pod`, or `cni: bridge`")
    for key in ("proxy", "services"):
        if getattr(pod, key) != getattr(usual, key) and sut.network not in SERVICE_NETWORKS:
            why = f"`{key}` has no effect on `{sut.network}`, which has no Service"
            yield Refusal((("sut", "pod", key), _NETWORK), why, "use `cluster-ip` or `node-port`, or leave it out")


def qos_faults(sut: SutSpec, pod: PodSpec) -> Iterator[Refusal]:
    """Check a QoS class: kubelet derives a pod's class from its requests and limits, not from a name."""
    limits = sut.limits
    for key in ("cpu_request", "memory_request"):
        if getattr(pod, key) is not None and pod.qos is not Qos.BURSTABLE:
            why = f"only the class `burstable` has a `{key}`; the requests of other classes follow from the limits"
            yield Refusal((("sut", "pod", key), _QOS), why, "use `qos: burstable`, or leave it out")
    if pod.qos is None:
        return
    weight: KeyPath = ("sut", "limits", "cpu_weight")
    if limits.cpu_weight is not None:
        yield Refusal((weight, _QOS), "kubelet derives the weight from the CPU request", "leave `cpu_weight` out")
    limited = [key for key in ("cpu_quota", "memory") if getattr(limits, key) is not None]
    if pod.qos is Qos.BEST_EFFORT and limited:
        keys = (("sut", "limits", limited[0]), _QOS)
        yield Refusal(keys, "a pod of the class `best-effort` has no limits", "use `burstable` or `guaranteed`")
    if pod.qos is Qos.GUARANTEED and (limits.memory is None or (limits.cpu_quota is None and limits.cpus is None)):
        why = "a pod of the class `guaranteed` has limits of CPU and memory"
        hint = "set `limits.memory` and `limits.cpu_quota`, or `limits.cpus` as the static CPU manager does"
        yield Refusal((_QOS, ("sut", "limits")), why, hint)
    if pod.qos is Qos.BURSTABLE:
        yield from _burstable_faults(sut, pod)


def _burstable_faults(sut: SutSpec, pod: PodSpec) -> Iterator[Refusal]:
    """Check the requests of a `burstable` pod; by default, they equal the limits (API defaults)."""
    cpus, memory = sut.limits.cpu_quota, _bytes(sut.limits.memory)
    cpu_request, memory_request = pod.cpu_request, _bytes(pod.memory_request)
    if cpus is None and memory is None and cpu_request is None and memory_request is None:
        why = "a pod that requests nothing and has no limits is of the class `best-effort`"
        yield Refusal((_QOS,), why, "set `pod.cpu_request`, `pod.memory_request` or a limit")
    for key, wanted, limit in (("cpu_request", cpu_request, cpus), ("memory_request", memory_request, memory)):
        if wanted is not None and limit is not None and wanted > limit:
            of = "cpu_quota" if key == "cpu_request" else "memory"
            keys: tuple[KeyPath, ...] = (("sut", "pod", key), ("sut", "limits", of))
            yield Refusal(keys, f"`{key}` is above the limit", f"lower it, or raise `limits.{of}`")
    limited = cpus is not None and memory is not None
    if limited and cpu_request in {None, cpus} and memory_request in {None, memory}:
        why = "a pod with limits of CPU and memory that requests as much as both is of the class `guaranteed`"
        yield Refusal(
            (_QOS, ("sut", "limits")), why, "set `pod.cpu_request` or `pod.memory_request` below its limit"
        )


def _bytes(text: str | None) -> int | None:
    return None if text is None else size_bytes(text)
