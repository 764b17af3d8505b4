"""A pod of a cluster beside a container and a bare server: alike in all that is not a pod's nature."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.parity.test_compare import TOKEN, parity, record, settings, study

from tare.record.network_path import Hop, NetworkPath
from tare.run.parity.compare import differences
from tare.run.parity.declared import undeclared
from tare.study.model import LimitsSpec, PodSpec
from tare.study.values import NetworkKind, Qos

UID = "0123abcd-0000-1111-2222-0123456789ab"
FACTS = {
    "qos": "burstable", "node": "n", "kubelet": "v1.34.4", "runtime": "containerd://1.6.20", "cpu_manager": "none",
}  # fmt: skip


def of_kubelet(place: str = "burstable/", **changes: Any) -> dict[str, Any]:
    path = f"/kubepods/{place}pod{UID}/{'ab' * 32}"
    return {
        "cgroups": {"cpu,cpuacct": path, "memory": path, "name=systemd": path},
        "oom_score_adj": 990,
        "cpu_weight": 256,
        "pod": {**FACTS, **changes},
    }


def run_of(arm: str, deployment: str, **sut: Any) -> Any:
    placed = settings(deployment).model_dump(mode="json")
    return record(arm, sut=sut or None, settings=placed)


def test_a_pod_beside_a_container_differs_by_nature_alone() -> None:
    one, other = run_of("host", "container"), run_of("bridge", "pod", **of_kubelet())
    assert differences(study(), one, other) == ()
    assert differences(study(), other, one) == ()


@pytest.mark.parametrize("changes", [{"oom_score_adj": 980}, {"cpu_weight": 1024}])
def test_two_pods_are_alike_in_their_classes_weight_and_score(changes: dict[str, Any]) -> None:
    one = run_of("bridge", "pod", **of_kubelet())
    other = run_of("bridge", "pod", **{**of_kubelet(), **changes})
    assert len(differences(study(), one, other)) == 1


def test_the_uid_of_a_pod_is_no_difference_and_its_place_is() -> None:
    one, again = run_of("bridge", "pod", **of_kubelet()), of_kubelet()
    path = f"/kubepods/burstable/pod{UID.replace('0123abcd', '4567abcd')}/{'cd' * 32}"
    again["cgroups"] = dict.fromkeys(again["cgroups"], path)
    assert differences(study(), one, run_of("bridge", "pod", **again)) == ()
    (unlike,) = differences(study(), one, run_of("bridge", "pod", **of_kubelet("")))
    assert str(unlike).startswith(
        "SUT: parent cgroup: /kubepods/burstable/podUID in bridge, /kubepods/podUID in bridge"
    )


def test_variables_of_the_clusters_own_service_are_no_difference() -> None:
    one = run_of("host", "container", environment={"A": "1"})
    other = run_of("bridge", "pod", **of_kubelet(), environment={"A": "1", "KUBERNETES_SERVICE_HOST": "10.2.0.1"})
    assert differences(study(), one, other) == ()


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_two_pods_of_one_arm_have_the_same_cluster_around_them(fact: str) -> None:
    one, other = run_of("bridge", "pod", **of_kubelet()), run_of("bridge", "pod", **of_kubelet(**{fact: "another"}))
    (unlike,) = differences(study(), one, other)
    assert unlike.name == f"SUT: pod: {fact.replace('_', ' ')}"


@pytest.mark.parametrize(
    ("pod", "seen", "sentences"),
    [
        (None, of_kubelet(), ()),
        (PodSpec(qos=Qos.BURSTABLE), of_kubelet(), ()),
        (PodSpec(qos=Qos.GUARANTEED), of_kubelet(),
         ("SUT: class guaranteed declared, the cluster gave it burstable",)),
        (None, of_kubelet("besteffort/"),
         (f"SUT: parent cgroup: a pod of the class burstable declared, /kubepods/besteffort/pod{UID} in force",)),
        (None, {**of_kubelet(), "cgroups": {"cpu,cpuacct": f"/tare/{TOKEN}/x"}},
         ("SUT: parent cgroup: a pod of the class burstable declared, /tare/RUN in force",)),
        (None, of_kubelet("", qos="guaranteed"), ()),
    ],
)  # fmt: skip
def test_a_pod_stands_in_kubelets_groups_of_its_class(
    pod: PodSpec | None, seen: dict[str, Any], sentences: tuple[str, ...]
) -> None:
    placed = settings("pod", network=NetworkKind.POD, pod=pod)
    got = undeclared(placed, parity(**seen), NetworkPath(Hop.BRIDGE), TOKEN)
    assert tuple(each.replace("podUID", f"pod{UID}") for each in got) == sentences


def test_a_limit_is_held_in_a_pod_as_anywhere() -> None:
    placed = settings("pod", network=NetworkKind.POD, limits=LimitsSpec(cpu_quota=0.5))
    got = undeclared(placed, parity(**of_kubelet()), NetworkPath(Hop.BRIDGE), TOKEN)
    assert got == ("SUT: CPU quota: 0.5 declared, none in force",)
