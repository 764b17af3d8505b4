"""What the API tells of a pod, as kubelet and scheduler of Kubernetes 1.34 put it, in a sentence each."""

from __future__ import annotations

from typing import Any

import pytest

from tare.deployments.kube.states import Ended, ended, qos_of, running, why_not_started, why_removed
from tare.study.values import Qos


def pod(status: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", **meta}, "status": status}


def with_state(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    status = {"name": "task", "state": state, "containerID": f"containerd://{'ab' * 32}"}
    conditions = [{"type": "PodScheduled", "status": "True"}]
    return pod({"containerStatuses": [status], "conditions": conditions, **more})


RUNNING = with_state({"running": {"startedAt": "2026-11-26T01:00:00Z"}}, qosClass="Guaranteed")
EVICTED = pod({"phase": "Failed", "reason": "Evicted",
               "message": "The node was low on resource: memory. Threshold: 100Mi. "})  # fmt: skip
UNSCHEDULABLE = {
    "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 Insufficient cpu.",
}  # fmt: skip


def test_a_running_container_is_known_by_its_id_without_the_runtimes_name() -> None:
    assert running(RUNNING) == "ab" * 32
    assert running(pod({})) is None
    assert qos_of(RUNNING) is Qos.GUARANTEED


@pytest.mark.parametrize(
    ("tree", "sentence", "at_once"),
    [
        (pod({}), "the pod p is pending, as no scheduler has looked at it", False),
        (pod({"conditions": [UNSCHEDULABLE]}),
         "the pod p is pending, as no node takes it: 0/1 nodes are available: 1 Insufficient cpu.", False),
        (with_state({"waiting": {"reason": "ContainerCreating"}}),
         "the pod p does not start: ContainerCreating", False),
        (with_state({"waiting": {"reason": "ErrImageNeverPull", "message": 'Container image "i" is not present'}}),
         'the pod p cannot start, ErrImageNeverPull: Container image "i" is not present', True),
        (with_state({"waiting": {"reason": "CreateContainerError", "message": "failed to mount"}}),
         "the pod p cannot start, CreateContainerError: failed to mount", True),
        (with_state({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}),
         "the pod p cannot start, ImagePullBackOff: Back-off", True),
        (with_state({"terminated": {"exitCode": 128, "reason": "StartError"}}),
         "the pod p ended with exit code 128 (StartError) before its program started", True),
        (EVICTED,
         "the pod p was evicted from its node: The node was low on resource: memory. Threshold: 100Mi", True),
    ],
)  # fmt: skip
def test_a_pod_that_does_not_start_is_explained(tree: dict[str, Any], sentence: str, *, at_once: bool) -> None:
    stuck = why_not_started(tree)
    assert (stuck.why, stuck.at_once) == (sentence, at_once)


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (RUNNING, None),
        (pod({}, deletionTimestamp="2026-11-26T01:00:00Z"), "the pod p was deleted by someone else"),
        (pod({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
                              "message": "preempting"}]}),
         "the pod p was taken away by the cluster (PreemptionByScheduler): preempting"),
        (pod({"reason": "NodeShutdown", "message": "Pod was terminated."}),
         "the pod p was ended by the cluster (NodeShutdown): Pod was terminated"),
    ],
)  # fmt: skip
def test_a_pod_that_its_cluster_ends_says_why(tree: dict[str, Any], sentence: str | None) -> None:
    assert why_removed(tree) == sentence


def test_the_end_of_a_container_has_a_code_and_kubelets_word() -> None:
    assert ended(RUNNING) is None
    assert ended(with_state({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})) == Ended(137, "OOMKilled")
