"""What `deployment: pod` is refused for: what a cluster decides by itself, and what its nodes cannot be given."""

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


def refuse_cluster_pod(sut: SutSpec, client: Placement | None) -> Refusal | None:
    """The first reason why SUT or client cannot be a pod of a cluster so, `None` where they can or are none."""
    return next(_faults(sut, client), None)


def _faults(sut: SutSpec, client: Placement | None) -> Iterator[Refusal]:
    if client is not None and client.deployment == POD:
        why = "a client is no pod of a cluster"
        yield Refusal((("client", "deployment"),), why, "use bare or container for the client")
    if sut.deployment != POD:
        return
    if sut.network not in _NETWORKS:
        why = f"a pod of a cluster cannot be on `{sut.network}`"
        yield Refusal((("sut", "network"), _DEPLOYMENT), why, f"use {_listed()}")
    if client is None:
        why = "a program that needs no database cannot be a pod of a cluster"
        yield Refusal((_DEPLOYMENT,), why, "use bare or container")
    elif client.network is not NetworkKind.HOST:
        why = f"a client of a pod stands on its node, and not on `{client.network}`"
        yield Refusal((("client", "network"), _DEPLOYMENT), why, "use `client.network: host`")
    if sut.nodes > 1:
        why = f"{sut.nodes} pods would need addresses before they are made"
        yield Refusal((("sut", "nodes"), _DEPLOYMENT), why, "use one node, or another deployment")
    for key, why in (("cpu_weight", "kubelet sets the weight by what is requested"),
                     ("disk_iops", "Kubernetes limits no disk operations")):  # fmt: skip
        if getattr(sut.limits, key) is not None:
            yield Refusal((("sut", "limits", key), _DEPLOYMENT), why, f"leave `{key}` out")
    if sut.pod is not None:
        yield from _pod_faults(sut, sut.pod)


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
