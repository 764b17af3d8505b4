"""What is asked of the API: one container as a task has it, with what Kubernetes would add turned off."""

from __future__ import annotations

from typing import Any

import pytest

from tare.deployments import Bind, Limits, PodSetting, Task, Volume
from tare.deployments.kube.manifest import pod_of, refused, resources_of, service_of
from tare.deployments.kube.node import Node
from tare.errors import RunFailed
from tare.images import Image, ImageConfig
from tare.sites import Output
from tare.study.values import NetworkKind, Qos

NODE = Node("node-1", "10.0.0.1", "containerd://1.6.20", "v1.34.4")


def a_task(**given: Any) -> Task:
    image = Image("i", "d" * 64, "/rootfs", None, ImageConfig(env=(("A", "1"),)), owner="999:998")
    usual: dict[str, Any] = {
        "name": "tare-0123456789ab-sut", "image": image, "argv": ("server", "--port", "1"),
        "output": Output("/w/raw/o", "/w/raw/e"), "cgroup_parent": "tare/0123456789ab",
    }  # fmt: skip
    return Task(**{**usual, **given})


def manifest(**given: Any) -> Any:
    return pod_of(a_task(**given), "ns", NODE, "image:1", "/run/gate")


def test_a_pod_has_the_tasks_user_environment_and_binds_and_begins_at_the_gate() -> None:
    tree = manifest(binds=(Bind("/host/data", "/data"), Bind("/host/run", "/run/tare", read_only=True)))
    (container,) = tree["spec"]["containers"]
    assert container["command"][:2] == ["/.tare/gate", "/.tare/open"]
    assert container["command"][-4:] == ["", "server", "--port", "1"]
    assert container["securityContext"] == {"runAsUser": 999, "runAsGroup": 998, "readOnlyRootFilesystem": True}
    assert {"name": "A", "value": "1"} in container["env"]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    sources = {each["name"]: each.get("hostPath", {}).get("path") for each in tree["spec"]["volumes"]}
    assert sources[mounts["/data"]["name"]] == "/host/data"
    assert mounts["/run/tare"]["readOnly"]
    assert not mounts["/data"]["readOnly"]
    assert sources[mounts["/.tare"]["name"]] == "/run/gate"


def test_a_pod_brings_its_image_gets_no_token_and_is_never_restarted() -> None:
    spec = manifest()["spec"]
    assert spec["containers"][0]["imagePullPolicy"] == "Never"
    assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)
    assert spec["restartPolicy"] == "Never"


def test_a_pod_goes_to_its_node_by_the_scheduler() -> None:
    spec = manifest()["spec"]
    assert "nodeName" not in spec
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]


@pytest.mark.parametrize("network", [NetworkKind.HOST, NetworkKind.POD, NetworkKind.HOST_PORT])
def test_a_network_is_the_hosts_a_pods_or_a_port_of_the_node(network: NetworkKind) -> None:
    spec = manifest(network=network, port=6379)["spec"]
    assert spec["hostNetwork"] == (network is NetworkKind.HOST)
    ports = spec["containers"][0].get("ports")
    assert ports == ([{"containerPort": 6379, "hostPort": 6379, "hostIP": "10.0.0.1"}]
                     if network is NetworkKind.HOST_PORT else None)  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "setting", "resources"),
    [
        (Limits(), PodSetting(), {}),
        (Limits(cpu_quota=1.5, memory_bytes=1 << 30), PodSetting(),
         {"limits": {"cpu": "1500m", "memory": "1073741824"}}),
        (Limits(cpu_quota=0.5), PodSetting(qos=Qos.BURSTABLE, cpu_request=0.25),
         {"limits": {"cpu": "500m"}, "requests": {"cpu": "250m"}}),
        (Limits(cpus="0-1", memory_bytes=1 << 20), PodSetting(qos=Qos.GUARANTEED),
         {"limits": {"cpu": "2000m", "memory": "1048576"}}),
        (Limits(cpus="0-1", memory_bytes=1 << 20), PodSetting(), {"limits": {"memory": "1048576"}}),
        (Limits(), PodSetting(qos=Qos.BURSTABLE, memory_request_bytes=1 << 20),
         {"requests": {"memory": "1048576"}}),
    ],
)  # fmt: skip
def test_requests_and_limits_are_the_studys(limits: Limits, setting: PodSetting, resources: Any) -> None:
    assert resources_of(limits, setting) == resources


@pytest.mark.parametrize(
    ("network", "kind"), [(NetworkKind.CLUSTER_IP, "ClusterIP"), (NetworkKind.NODE_PORT, "NodePort")]
)
def test_a_service_leads_to_the_one_pod(network: NetworkKind, kind: str) -> None:
    task = a_task(network=network, port=6379)
    spec, labels = service_of(task, "ns")["spec"], manifest(network=network, port=6379)["metadata"]["labels"]
    assert spec["type"] == kind
    assert spec["selector"].items() <= labels.items()
    assert spec["ports"][0]["port"] == 6379


def test_no_service_leads_to_a_pod_that_is_dialled_itself() -> None:
    with pytest.raises(RunFailed, match="no Service leads to a pod on the network `pod`"):
        service_of(a_task(network=NetworkKind.POD), "ns")


def test_what_a_pod_cannot_have_is_named() -> None:
    assert tuple(refused(a_task())) == ()
    task = a_task(volumes=(Volume("v", "/v"),), limits=Limits(disk_iops=5, cpu_weight=50))
    assert len(tuple(refused(task))) == 3
