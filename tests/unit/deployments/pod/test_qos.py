"""kubelet's arithmetic: requests to weights and scores, limits to quotas (Kubernetes 1.34, pkg/kubelet)."""

from __future__ import annotations

import pytest
from tests.unit.deployments.pod.test_parts import GIB, V1, V2, read

from tare.deployments import Limits, PodSetting
from tare.deployments.pod.qos import cpu_request, cpu_shares_of, cpu_weight_of, groups_of, oom_score_adj
from tare.study.values import Qos

POD = "tare/r/kubepods/burstable/podx"


@pytest.mark.parametrize(
    ("cpus", "shares", "weight"),
    [(None, 2, 1), (0.001, 2, 1), (0.25, 256, 10), (0.5, 512, 20), (1, 1024, 39), (2, 2048, 79),
     (300, 262_144, 10_000)],
)  # fmt: skip
def test_weights_follow_from_what_is_requested(cpus: float | None, shares: int, weight: int) -> None:
    assert (cpu_shares_of(cpus), cpu_weight_of(shares)) == (shares, weight)


@pytest.mark.parametrize(
    ("setting", "limits", "requested"),
    [
        (PodSetting(qos=Qos.BEST_EFFORT), Limits(cpus="0"), None),
        (PodSetting(qos=Qos.BURSTABLE, cpu_request=0.25), Limits(cpu_quota=1.0), 0.25),
        (PodSetting(qos=Qos.BURSTABLE), Limits(cpu_quota=1.0), 1.0),
        (PodSetting(qos=Qos.BURSTABLE, memory_request_bytes=GIB), Limits(cpus="0-1"), None),
        (PodSetting(qos=Qos.GUARANTEED), Limits(cpus="0-1"), 2.0),
        (PodSetting(qos=Qos.GUARANTEED), Limits(cpus="0-1", cpu_quota=1.5), 1.5),
    ],
)
def test_what_is_not_requested_is_as_much_as_the_limit(
    setting: PodSetting, limits: Limits, requested: float | None
) -> None:
    assert cpu_request(setting, limits) == requested


@pytest.mark.parametrize(
    ("setting", "limits", "score"),
    [
        (PodSetting(qos=Qos.GUARANTEED), Limits(), -997),
        (PodSetting(qos=Qos.BEST_EFFORT), Limits(), 1000),
        (PodSetting(qos=Qos.BURSTABLE), Limits(), 999),
        (PodSetting(qos=Qos.BURSTABLE), Limits(memory_bytes=GIB), 750),
        (PodSetting(qos=Qos.BURSTABLE, memory_request_bytes=2 * GIB), Limits(memory_bytes=3 * GIB), 500),
        (PodSetting(qos=Qos.BURSTABLE, memory_request_bytes=1 << 20), Limits(), 999),
        (PodSetting(qos=Qos.BURSTABLE, memory_request_bytes=4 * GIB), Limits(), 3),
    ],
)
def test_the_more_memory_is_requested_the_later_the_kernel_ends_it(
    setting: PodSetting, limits: Limits, score: int
) -> None:
    """Of a machine of 4 GiB; 3 and 999 leave room for the classes above and below."""
    assert oom_score_adj(setting, limits, 4 * GIB) == score


@pytest.mark.parametrize("quota", [0.01, 0.5, 1.0, 2.5])
def test_limits_are_quotas_and_memory_of_the_pods_group_alone(quota: float) -> None:
    limits, setting = Limits(cpu_quota=quota, memory_bytes=GIB), PodSetting(qos=Qos.BURSTABLE, cpu_request=0.25)
    first = {each.path: each.value for each in groups_of(V1, "tare/r", "x", setting, limits, read).writes}
    second = {each.path: each.value for each in groups_of(V2, "tare/r", "x", setting, limits, read).writes}
    microseconds = str(round(quota * 100_000))
    assert first[f"/cg/cpu/{POD}/cpu.cfs_quota_us"] == microseconds
    assert first[f"/cg/memory/{POD}/memory.limit_in_bytes"] == second[f"/cg/{POD}/memory.max"] == str(GIB)
    assert second[f"/cg/{POD}/cpu.max"] == f"{microseconds} 100000"
    assert (first[f"/cg/cpu/{POD}/cpu.shares"], second[f"/cg/{POD}/cpu.weight"]) == ("256", "10")
    for place in ("tare/r/kubepods", "tare/r/kubepods/burstable"):
        assert f"/cg/cpu/{place}/cpu.cfs_quota_us" not in first
        assert f"/cg/{place}/cpu.max" not in second
