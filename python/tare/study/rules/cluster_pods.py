"""Rules for `deployment: pod`: what a cluster decides by itself, and what its nodes cannot provide."""

from __future__ import annotations

from collections.abc import Iterator

from tare.deployments import POD
from tare.study.model import Placement, PodSpec, SutSpec
from tare.study.reading.document import KeyPath
from tare.study.rules.pods import qos_faults
from tare.study.rules.refusal import Refusal
from tare.study.values import POD_NETWORKS, NetworkKind

_DEPLOYMENT: KeyPath = ("sut", "deployment")
_BY_CLUSTER = ("sandbox", "cni", "proxy", "services")
_NETWORKS = POD_NETWORKS | {NetworkKind.HOST}
_OF_CLIENT = frozenset({NetworkKind.HOST, NetworkKind.POD})
_NOT_LIMITED = (
    ("cpu_weight", "kubelet derives the weight from the CPU request"),
    ("disk_iops", "Kubernetes cannot limit disk operations"),
    ("shm", "kubelet does not set the size of /dev/shm"),
    ("memlock", "kubelet does not set resource limits"),
)


def refuse_cluster_pod(sut: SutSpec, client: Placement | None) -> Refusal | None:
    """Return the first reason why SUT or client cannot be such a pod of a cluster; `None` if fine or no pods."""
    return next(_faults(sut, client), None)


def _faults(sut: SutSpec, client: Placement | None) -> Iterator[Refusal]:
    if client is not None and client.deployment == POD:
        yield from _client_faults(sut, client)
    if sut.deployment != POD:
        return
    if sut.network not in _NETWORKS:
        why = f"a pod of a cluster cannot be on `{sut.network}`"
        yield Refusal((("sut", "network"), _DEPLOYMENT), why, f"use {_listed()}")
    if client is None:
        why = "a program that needs no database cannot be a pod of a cluster"
        yield Refusal((_DEPLOYMENT,), why, "use bare or container")
    elif client.deployment != POD and client.network is not NetworkKind.HOST:
        why = f"a client outside the cluster runs on the pod's node, not on `{client.network}`"
        hint = "use `client.network: host`, or `client.deployment: pod`"
        yield Refusal((("client", "network"), _DEPLOYMENT), why, hint)
    if sut.nodes > 1:
        why = f"{sut.nodes} pods would need addresses before they are made"
        yield Refusal((("sut", "nodes"), _DEPLOYMENT), why, "use one node, or another deployment")
    yield from _limit_faults("sut", sut)
    if sut.pod is not None:
        yield from _pod_faults(sut, sut.pod)


def _client_faults(sut: SutSpec, client: Placement) -> Iterator[Refusal]:
    """Check a client in a pod. Outside the cluster, it reliably reaches only what listens at the node's address."""
    keys: tuple[KeyPath, ...] = (("client", "network"), ("client", "deployment"))
    if client.network not in _OF_CLIENT:
        why = f"a client in a pod of a cluster cannot be on `{client.network}`"
        yield Refusal(keys, why, "use host or pod")
    if client.network is NetworkKind.POD and sut.deployment != POD:
        if sut.network is not NetworkKind.HOST:
            why = f"a client on the cluster's network may not reach a server on `{sut.network}`"
            hint = "use `sut.network: host`, `sut.deployment: pod`, or `client.network: host`"
            yield Refusal((("client", "network"), ("sut", "network")), why, hint)
        if sut.nodes > 1:
            why = f"{sut.nodes} nodes on one host listen on its loopback address, which pods cannot reach"
            yield Refusal((("client", "network"), ("sut", "nodes")), why, "use `client.network: host`, or one node")
    yield from _limit_faults("client", client)


def _limit_faults(side: str, placed: Placement) -> Iterator[Refusal]:
    for key, why in _NOT_LIMITED:
        if getattr(placed.limits, key) is not None:
            yield Refusal(((side, "limits", key), (side, "deployment")), why, f"leave `{key}` out")


def _pod_faults(sut: SutSpec, pod: PodSpec) -> Iterator[Refusal]:
    usual = PodSpec()
    for key in _BY_CLUSTER:
        if getattr(pod, key) != getattr(usual, key):
            why = f"the cluster decides `{key}`, not the study"
            yield Refusal((("sut", "pod", key), _DEPLOYMENT), why, "leave it out")
    yield from qos_faults(sut, pod)


def _listed() -> str:
    *some, last = sorted(network.value for network in _NETWORKS)
    return f"{', '.join(some)} or {last}"
