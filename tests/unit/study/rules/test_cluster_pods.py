"""`deployment: pod` is refused for what the cluster decides and a node cannot have, with the key that clashes."""

from __future__ import annotations

from typing import Any

import pytest

from tare.study.model import ClientSpec, LimitsSpec, PodSpec, SutSpec
from tare.study.rules.cluster_pods import refuse_cluster_pod
from tare.study.rules.placement import refuse_placement
from tare.study.rules.pods import refuse_pod
from tare.study.values import NetworkKind, Qos

CLIENT = ClientSpec(image="i", deployment="bare")
BOTH = LimitsSpec(cpu_quota=1.0, memory="1G")


def client_pod(network: str = "pod", **placed: Any) -> ClientSpec:
    return ClientSpec(image="i", deployment="pod", network=NetworkKind(network), **placed)


def server(network: str = "pod", pod: dict[str, Any] | None = None, **placed: Any) -> SutSpec:
    given = {"image": "i", "database": "d", "deployment": "pod", "network": NetworkKind(network), **placed}
    return SutSpec(**given, pod=None if pod is None else PodSpec(**pod))


@pytest.mark.parametrize(
    "sut",
    [
        *(server(network) for network in ("host", "pod", "host-port", "cluster-ip", "node-port")),
        server(limits=LimitsSpec(cpus="0", memory="256M")),
        server(pod={"qos": Qos.GUARANTEED}, limits=BOTH),
        server(pod={"qos": Qos.BURSTABLE, "cpu_request": 0.5}, limits=BOTH),
        server(pod={"qos": Qos.BEST_EFFORT}),
        server("bridge", deployment="container"),
    ],
    ids=str,
)
def test_a_pod_that_can_be_is_made(sut: SutSpec) -> None:
    assert refuse_cluster_pod(sut, CLIENT) is None
    assert refuse_placement(sut, CLIENT, sut_isolates=True, client_isolates=False) is None


@pytest.mark.parametrize(
    ("sut", "client", "key", "why"),
    [
        (server("bridge"), CLIENT, "sut.network", "a pod of a cluster cannot be on `bridge`"),
        (server("published-loopback"), CLIENT, "sut.network", "cannot be on `published-loopback`"),
        (server(), None, "sut.deployment", "a program that needs no database cannot be a pod"),
        (server(), ClientSpec(image="i", deployment="container", network=NetworkKind.BRIDGE), "client.network",
         "a client outside the cluster runs on the pod's node, not on `bridge`"),
        (server(), client_pod("bridge"), "client.network", "a client in a pod of a cluster cannot be on `bridge`"),
        (server(), client_pod("cluster-ip"), "client.network", "cannot be on `cluster-ip`"),
        (server("bridge", deployment="container"), client_pod(), "client.network",
         "may not reach a server on `bridge`"),
        (server("host", deployment="bare", nodes=3), client_pod(), "client.network", "listen on its loopback"),
        (server(), client_pod(limits=LimitsSpec(cpu_weight=50)), "client.limits.cpu_weight", "kubelet derives"),
        (server(nodes=3), CLIENT, "sut.nodes", "3 pods would need addresses before they are made"),
        (server(limits=LimitsSpec(cpu_weight=50)), CLIENT, "sut.limits.cpu_weight", "kubelet derives the weight"),
        (server(limits=LimitsSpec(disk_iops=50)), CLIENT, "sut.limits.disk_iops", "cannot limit disk operations"),
        (server(pod={"cni": "macvlan"}), CLIENT, "sut.pod.cni", "the cluster decides `cni`"),
        (server("cluster-ip", pod={"services": 10}), CLIENT, "sut.pod.services", "the cluster decides `services`"),
        (server("cluster-ip", pod={"proxy": "nftables"}), CLIENT, "sut.pod.proxy", "the cluster decides `proxy`"),
        (server(pod={"qos": Qos.GUARANTEED}), CLIENT, "sut.pod.qos", "has limits of CPU and memory"),
        (server(pod={"qos": Qos.BEST_EFFORT}, limits=BOTH), CLIENT, "sut.limits.cpu_quota", "has no limits"),
    ],
)  # fmt: skip
def test_a_pod_that_cannot_be_names_the_key(sut: SutSpec, client: ClientSpec | None, key: str, why: str) -> None:
    refusal = refuse_cluster_pod(sut, client)
    assert refusal is not None
    assert ".".join(map(str, refusal.keys[0])) == key
    assert why in refusal.why


@pytest.mark.parametrize(
    ("sut", "client"),
    [
        *((server(network), client_pod()) for network in ("host", "pod", "host-port", "cluster-ip", "node-port")),
        (server("node-port"), client_pod("host")),
        (server("host", deployment="bare"), client_pod()),
        (server("host", deployment="container"), client_pod()),
        (server("bridge", deployment="container"), client_pod("host")),
    ],
    ids=str,
)
def test_a_client_is_a_pod_beside_a_pod_or_a_server_outside(sut: SutSpec, client: ClientSpec) -> None:
    assert refuse_placement(sut, client, sut_isolates=sut.deployment != "bare", client_isolates=True) is None


def test_the_rules_of_pods_without_a_cluster_leave_it_alone() -> None:
    assert refuse_pod(server(), CLIENT) is None


@pytest.mark.parametrize("sut", [server(engine="podman"), server(runtime="crun")], ids=str)
def test_no_engine_makes_a_pod_of_a_cluster(sut: SutSpec) -> None:
    refusal = refuse_placement(sut, CLIENT, sut_isolates=True, client_isolates=False)
    assert refusal is not None
    assert refusal.why == "`pod` is not made by an engine"
