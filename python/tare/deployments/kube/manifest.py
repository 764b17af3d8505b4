"""Manifests for the API server: the pod of a task, and the Service in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tare.deployments import Limits, PodSetting, Task
from tare.deployments.defaults import SCRATCH, environment
from tare.deployments.kube.api import Tree
from tare.deployments.kube.gate import DIRECTORY, gated
from tare.deployments.kube.node import Node
from tare.deployments.kube.states import CONTAINER
from tare.errors import RunFailed
from tare.study.values import SERVICE_NETWORKS, NetworkKind, Qos, cpu_set

MANAGED = {"app.kubernetes.io/managed-by": "tare"}
TASK = "org.tare-bench.task"
_MILLI = 1000


def pod_of(task: Task, namespace: str, node: Node, image: str, gate: str) -> Tree:
    """A pod with one container on `node`.

    `gate`: directory of the node with the program that the container starts with. The pod has nothing that an
    engine's container does not have: no token, no Service variables, no probes.
    """
    user, _, group = (task.image.owner or "0:0").partition(":")
    given = [("gate", gate, DIRECTORY, True)]
    given += [(f"bind-{at}", bind.source, bind.target, bind.read_only) for at, bind in enumerate(task.binds)]
    scratch = [(f"scratch-{at}", place.target) for at, place in enumerate(SCRATCH)]
    env = environment(task)
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(gated(task.argv, env)),
        "workingDir": task.workdir,
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": resources_of(task.limits, task.pod or PodSetting()),
        "securityContext": {"runAsUser": int(user), "runAsGroup": int(group or 0), "readOnlyRootFilesystem": True},
        "volumeMounts": [
            *({"name": name, "mountPath": path} for name, path in scratch),
            *({"name": name, "mountPath": to, "readOnly": only} for name, _, to, only in given),
            *(
                {"name": f"claim-{at}", "mountPath": each.target, **({"subPath": each.below} if each.below else {})}
                for at, each in enumerate(task.claims)
            ),
        ],
    }
    if task.network is NetworkKind.HOST_PORT and task.port:
        container["ports"] = [{"containerPort": task.port, "hostPort": task.port, "hostIP": node.address}]
    spec: dict[str, Any] = {
        "affinity": {"nodeAffinity": _on(node)},
        "automountServiceAccountToken": False,
        "containers": [container],
        "enableServiceLinks": False,
        "hostNetwork": task.network is NetworkKind.HOST,
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [
            *({"name": name, "emptyDir": {"medium": "Memory"}} for name, _ in scratch),
            *({"name": name, "hostPath": {"path": source}} for name, source, _, _ in given),
            *(
                {"name": f"claim-{at}", "persistentVolumeClaim": {"claimName": each.name}}
                for at, each in enumerate(task.claims)
            ),
        ],
    }
    meta = {"name": task.name, "namespace": namespace, "labels": {**MANAGED, TASK: task.name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def service_of(task: Task, namespace: str) -> Tree:
    """The Service in front of a pod; with a port of the node for the network `node-port`."""
    if task.network not in SERVICE_NETWORKS:
        raise RunFailed(f"{task.name}: no Service leads to a pod on the network `{task.network.value}`")
    kind = "NodePort" if task.network is NetworkKind.NODE_PORT else "ClusterIP"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": task.name, "namespace": namespace, "labels": dict(MANAGED)},
        "spec": {
            "type": kind,
            "selector": {TASK: task.name},
            "ports": [{"name": "server", "protocol": "TCP", "port": task.port, "targetPort": task.port}],
        },
    }


def resources_of(limits: Limits, setting: PodSetting) -> Mapping[str, Any]:
    """Requests and limits, which determine the QoS class; a missing request equals the limit."""
    quota = limits.cpu_quota
    if setting.qos is Qos.GUARANTEED and quota is None and limits.cpus is not None:
        quota = float(len(cpu_set(limits.cpus)))
    limited = {
        **({} if quota is None else {"cpu": _cpu(quota)}),
        **({} if limits.memory_bytes is None else {"memory": str(limits.memory_bytes)}),
    }
    requested = {
        **({} if setting.cpu_request is None else {"cpu": _cpu(setting.cpu_request)}),
        **({} if setting.memory_request_bytes is None else {"memory": str(setting.memory_request_bytes)}),
    }
    return {**({"limits": limited} if limited else {}), **({"requests": requested} if requested else {})}


def refused(task: Task) -> Iterator[str]:
    """Settings of a task that a pod of a cluster cannot have, one sentence each."""
    if task.volumes or task.layers:
        yield "a pod has no engine's volumes or layers"
    if task.limits.disk_iops is not None:
        yield "Kubernetes cannot limit disk operations"
    if task.limits.shm_bytes is not None or task.limits.memlock_bytes is not None:
        yield "kubelet sets neither the size of /dev/shm nor resource limits"
    if task.limits.cpu_weight is not None:
        yield "kubelet derives the weight from the CPU request"


def _cpu(cpus: float) -> str:
    return f"{round(cpus * _MILLI)}m"


def _on(node: Node) -> Mapping[str, Any]:
    """Affinity to a node. The scheduler may still refuse the pod, because it counts requests."""
    wanted = {"key": "metadata.name", "operator": "In", "values": [node.name]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [wanted]}]}}
