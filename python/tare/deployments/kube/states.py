"""Sentences about a pod's state in the cluster: why it does not start, how it ended, who removed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tare.deployments.kube.api import Tree
from tare.study.values import Qos

CONTAINER = "task"
"""Name of the only container of each pod."""
_QOS = {"Guaranteed": Qos.GUARANTEED, "Burstable": Qos.BURSTABLE, "BestEffort": Qos.BEST_EFFORT}
_HINTS = {
    "ErrImageNeverPull": "the node has removed the image: free its disk, kubelet removes images above 85 %",
    "CreateContainerConfigError": "kubectl get events --all-namespaces shows more",
    "CreateContainerError": "kubectl get events --all-namespaces shows more",
    "RunContainerError": "the node's runtime cannot start it: journalctl -u containerd",
    "ErrImagePull": "tare copies images to the nodes itself and pulls none",
    "ImagePullBackOff": "tare copies images to the nodes itself and pulls none",
    "InvalidImageName": "tare copies images to the nodes itself and pulls none",
}
"""Reasons of a waiting container that do not go away by waiting (pkg/kubelet/images/types.go,
container/sync_result.go)."""
_BY_CLUSTER = frozenset(
    {"Evicted", "NodeLost", "NodeShutdown", "Terminated", "Preempting", "UnexpectedAdmissionError"}
)


@dataclass(frozen=True)
class Stuck:
    """Why a pod does not start. `at_once`: waiting cannot help."""

    why: str
    hint: str | None
    at_once: bool


@dataclass(frozen=True)
class Ended:
    """How a container ended. `code`: exit code as a shell's; `reason`: kubelet's term."""

    code: int
    reason: str


def running(pod: Tree) -> str | None:
    """ID of the pod's container, without the runtime's prefix; `None` if it is not running."""
    status = _container(pod)
    if "running" not in (status.get("state") or {}):
        return None
    return str(status.get("containerID", "")).rpartition("//")[2] or None


def ended(pod: Tree) -> Ended | None:
    """How the pod's container ended; `None` while that is unknown."""
    tree = (_container(pod).get("state") or {}).get("terminated")
    return None if tree is None else Ended(int(tree["exitCode"]), str(tree.get("reason") or ""))


def why_removed(pod: Tree) -> str | None:
    """Why the cluster ends a pod that tare did not ask it to end; `None` if it does not."""
    status, name = pod.get("status") or {}, pod["metadata"]["name"]
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "").strip().rstrip(".")
    if reason in _BY_CLUSTER:
        how = "was evicted from its node" if reason == "Evicted" else f"was ended by the cluster ({reason})"
        return f"the pod {name} {how}: {message or reason}"
    if condition := _condition(pod, "DisruptionTarget"):
        return (
            f"the pod {name} was taken away by the cluster ({condition.get('reason')}): {condition.get('message')}"
        )
    if pod["metadata"].get("deletionTimestamp"):
        return f"the pod {name} was deleted by someone else"
    return None


def why_not_started(pod: Tree) -> Stuck:
    """Why a pod does not start, as the scheduler or kubelet reports it."""
    name = pod["metadata"]["name"]
    if (gone := why_removed(pod)) is not None:
        return Stuck(gone, None, at_once=True)
    if (how := ended(pod)) is not None:
        why = f"the pod {name} ended with exit code {how.code} ({how.reason}) before its program started"
        return Stuck(why, None, at_once=True)
    waiting = (_container(pod).get("state") or {}).get("waiting") or {}
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "").strip()
    if reason in _HINTS:
        return Stuck(f"the pod {name} cannot start, {reason}: {message}", _HINTS[reason], at_once=True)
    scheduled = _condition(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        why = f"the pod {name} is pending, as no node takes it: {scheduled.get('message')}"
        return Stuck(why, "lower its requests and limits, or make room on the node", at_once=False)
    if scheduled.get("status") != "True":
        return Stuck(f"the pod {name} is pending, as no scheduler has looked at it", None, at_once=False)
    what = f"{reason}: {message}".strip(": ") or "kubelet has not reported on it"
    return Stuck(
        f"the pod {name} does not start: {what}", "kubectl get events --all-namespaces shows more", at_once=False
    )


def qos_of(pod: Tree) -> Qos | None:
    """QoS class that the API server assigned."""
    return _QOS.get(str((pod.get("status") or {}).get("qosClass")))


def _container(pod: Tree) -> dict[str, Any]:
    every = (pod.get("status") or {}).get("containerStatuses") or []
    return next((each for each in every if each["name"] == CONTAINER), {})


def _condition(pod: Tree, kind: str) -> dict[str, Any] | None:
    every = (pod.get("status") or {}).get("conditions") or []
    return next((each for each in every if each["type"] == kind), None)
