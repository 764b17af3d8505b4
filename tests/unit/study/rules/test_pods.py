"""Pods are refused for what no kubelet would make, with the key that clashes and what to write in its place."""

from __future__ import annotations

from typing import Any

import pytest

from tare.errors import StudyError
from tare.study.model import ClientSpec, LimitsSpec, PodSpec, SutSpec
from tare.study.reading.load import loads
from tare.study.registry import Registry
from tare.study.rules.pods import refuse_pod
from tare.study.values import POD_NETWORKS, NetworkKind, Qos

CLIENT = ClientSpec(image="i", deployment="bare")
BOTH = LimitsSpec(cpu_quota=1.0, memory="1G")
BURSTABLE = {"qos": Qos.BURSTABLE}


def server(pod: dict[str, Any] | None, network: str = "pod", **placed: Any) -> SutSpec:
    given = {"image": "i", "database": "d", "deployment": "container", "network": NetworkKind(network), **placed}
    return SutSpec(**given, pod=None if pod is None else PodSpec(**pod))


@pytest.mark.parametrize(
    "sut",
    [
        *(server({}, network) for network in ("host", "bridge", *sorted(POD_NETWORKS))),
        server({"sandbox": "pause"}, engine="docker"),
        server({"cni": "macvlan"}),
        server({"proxy": "nftables", "services": 16_000}, "cluster-ip"),
        server({"services": 10}, "node-port"),
        server({"qos": Qos.BEST_EFFORT}, limits=LimitsSpec(cpus="0")),
        server({**BURSTABLE, "cpu_request": 0.5}, limits=BOTH),
        server({**BURSTABLE, "memory_request": "512M"}, limits=BOTH),
        server({**BURSTABLE, "cpu_request": 0.5}),
        server(BURSTABLE, limits=LimitsSpec(cpu_quota=1.0)),
        server({"qos": Qos.GUARANTEED}, limits=BOTH),
        server({"qos": Qos.GUARANTEED}, limits=LimitsSpec(cpus="0", memory="1G")),
        server(None, "bridge"),
    ],
    ids=str,
)
def test_a_pod_that_can_be_is_made(sut: SutSpec) -> None:
    assert refuse_pod(sut, CLIENT) is None
    assert refuse_pod(sut, None) is None


@pytest.mark.parametrize(
    ("sut", "client", "key", "why"),
    [
        (server(None), {}, "sut.network", "`pod` is for pods, and the SUT is not in a pod"),
        (server({}), {"network": NetworkKind.POD}, "client.network", "and the client is not in a pod"),
        (server({}, "host", deployment="bare"), {}, "sut.pod", "`bare` cannot make a pod"),
        (server({"cni": "bridge"}, deployment="vm"), {}, "sut.pod.cni", "`vm` cannot make a pod"),
        (server({}, engine="podman"), {}, "sut.pod", "the engine `podman` cannot make a pod"),
        (server({}, "published-loopback"), {}, "sut.network",
         "does not publish the ports of a pod"),
        (server({}), {"network": NetworkKind.BRIDGE}, "client.network", "runs on the pod's node, not on `bridge`"),
        (server({}, nodes=3), {}, "sut.nodes", "3 pods would need addresses before they are made"),
        (server({"cni": "macvlan"}, "cluster-ip"), {}, "sut.pod.cni",
         "`cluster-ip` needs a node that forwards to the pod, and `macvlan` has none"),
        (server({"services": 10}), {}, "sut.pod.services", "`services` has no effect on `pod`"),
        (server({"proxy": "nftables"}, "host-port"), {}, "sut.pod.proxy", "`proxy` has no effect on `host-port`"),
        (server({"cpu_request": 0.5}), {}, "sut.pod.cpu_request", "only the class `burstable` has a `cpu_request`"),
        (server({"qos": Qos.GUARANTEED, "memory_request": "1G"}, limits=BOTH), {}, "sut.pod.memory_request",
         "only the class `burstable` has a `memory_request`"),
        (server({**BURSTABLE, "cpu_request": 1}, limits=LimitsSpec(cpu_weight=50)), {}, "sut.limits.cpu_weight",
         "kubelet derives the weight from the CPU request"),
        (server({"qos": Qos.BEST_EFFORT}, limits=BOTH), {}, "sut.limits.cpu_quota", "has no limits"),
        (server({"qos": Qos.BEST_EFFORT}, limits=LimitsSpec(memory="1G")), {}, "sut.limits.memory", "no limits"),
        (server({"qos": Qos.GUARANTEED}, limits=LimitsSpec(memory="1G")), {}, "sut.pod.qos",
         "has limits of CPU and memory"),
        (server({"qos": Qos.GUARANTEED}, limits=LimitsSpec(cpu_quota=1)), {}, "sut.pod.qos",
         "has limits of CPU and memory"),
        (server(BURSTABLE), {}, "sut.pod.qos", "is of the class `best-effort`"),
        (server(BURSTABLE, limits=BOTH), {}, "sut.pod.qos", "is of the class `guaranteed`"),
        (server({**BURSTABLE, "cpu_request": 1.0, "memory_request": "1024M"}, limits=BOTH), {}, "sut.pod.qos",
         "is of the class `guaranteed`"),
        (server({**BURSTABLE, "cpu_request": 1.5}, limits=BOTH), {}, "sut.pod.cpu_request",
         "`cpu_request` is above the limit"),
        (server({**BURSTABLE, "memory_request": "2G"}, limits=BOTH), {}, "sut.pod.memory_request",
         "`memory_request` is above the limit"),
    ],
)  # fmt: skip
def test_one_that_cannot_be_is_refused_at_its_key(sut: SutSpec, client: dict[str, Any], key: str, why: str) -> None:
    refusal = refuse_pod(sut, CLIENT.model_copy(update=client))
    assert refusal is not None
    assert ".".join(map(str, refusal.keys[0])) == key
    assert why in refusal.why
    assert refusal.hint


@pytest.mark.parametrize("services", [0, 16_001, 1_000_000])
def test_a_count_of_services_that_no_block_holds_is_refused_where_it_stands(
    services: int, text: str, registry: Registry
) -> None:
    many = f"bridge: {{sut.network: cluster-ip, sut.pod.services: {services}}}"
    assert "bridge: {sut.network: bridge}" in text
    with pytest.raises(
        StudyError, match=r"factors\.path\.levels\.bridge\.sut\.pod\.services: .*16000|at least 1"
    ) as refusal:
        loads(text.replace("bridge: {sut.network: bridge}", many), registry)
    assert "\n" not in refusal.value.what
