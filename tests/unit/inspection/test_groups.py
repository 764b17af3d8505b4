"""Control groups of both versions: the lowest limit of all parents, and counters."""

from __future__ import annotations

import pytest
from tests.unit.inspection.machine import GROUP, PID, V1, V2, machine

from tare.inspection.groups import group_of, oom_kills, read_group, throttling
from tare.inspection.readings import Readings
from tare.sites.fake import FakeHost
from tare.traps.predicate import Facts

OF_V1 = {
    f"/sys/fs/cgroup/memory{GROUP}/memory.limit_in_bytes": "9223372036854771712",
    "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes": "1073741824",
    f"/sys/fs/cgroup/memory{GROUP}/memory.usage_in_bytes": "1000",
    f"/sys/fs/cgroup/memory{GROUP}/memory.memsw.limit_in_bytes": "2147483648",
    f"/sys/fs/cgroup/memory{GROUP}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
    f"/sys/fs/cgroup/cpu{GROUP}/cpu.cfs_quota_us": "150000",
    f"/sys/fs/cgroup/cpu{GROUP}/cpu.cfs_period_us": "100000",
    f"/sys/fs/cgroup/cpu{GROUP}/cpu.stat": "nr_periods 200\nnr_throttled 50\nthrottled_time 7",
    f"/sys/fs/cgroup/cpu{GROUP}/cpu.shares": "512",
    f"/sys/fs/cgroup/pids{GROUP}/pids.max": "2048",
    f"/sys/fs/cgroup/pids{GROUP}/pids.current": "12",
    f"/sys/fs/cgroup/hugetlb{GROUP}/hugetlb.2MB.limit_in_bytes": "0",
}
OF_V2 = {
    f"/sys/fs/cgroup{GROUP}/memory.max": "max",
    "/sys/fs/cgroup/docker/memory.max": "1073741824",
    f"/sys/fs/cgroup{GROUP}/memory.current": "1000",
    f"/sys/fs/cgroup{GROUP}/memory.swap.max": "1073741824",
    f"/sys/fs/cgroup{GROUP}/memory.events": "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2",
    f"/sys/fs/cgroup{GROUP}/cpu.max": "150000 100000",
    f"/sys/fs/cgroup{GROUP}/cpu.stat": "usage_usec 9\nnr_periods 200\nnr_throttled 50",
    f"/sys/fs/cgroup{GROUP}/cpu.weight": "50",
    f"/sys/fs/cgroup{GROUP}/pids.max": "2048",
    f"/sys/fs/cgroup{GROUP}/pids.current": "12",
}


def host_of(mounts: str, files: dict[str, str]) -> FakeHost:
    host = machine(mounts=mounts)
    host.files |= {name: value.encode() for name, value in files.items()}
    return host


def facts_of(host: FakeHost) -> Facts:
    readings = Readings()
    read_group(group_of(host, PID), readings)
    return readings.facts


@pytest.mark.parametrize(("mounts", "files"), [(V1, OF_V1), (V2, OF_V2)], ids=["v1", "v2"])
def test_the_lowest_limit_of_a_group_and_its_parents_counts(mounts: str, files: dict[str, str]) -> None:
    facts = facts_of(host_of(mounts, files))
    assert facts["cgroup.memory_limit_bytes"] == 1 << 30
    assert facts["cgroup.swap_allowed_bytes"] == 1 << 30
    assert facts["cgroup.cpu_quota"] == 1.5
    assert facts["cgroup.throttled_share"] == 0.25
    assert facts["cgroup.oom_kills"] == 2
    assert facts["cgroup.cpu_weight_ratio"] == 0.5
    assert (facts["cgroup.pids_limit"], facts["cgroup.pids"]) == (2048, 12)
    assert facts["cgroup.hugetlb_limited"] is (mounts == V1)


def test_without_a_limit_it_is_none_and_without_a_file_it_is_not_known() -> None:
    free = {name: "max" for name in OF_V2 if name.endswith(("memory.max", "cpu.max"))}
    facts = facts_of(host_of(V2, {**OF_V2, **free, f"/sys/fs/cgroup{GROUP}/cpu.max": "max 100000"}))
    assert facts["cgroup.memory_limit_bytes"] == facts["cgroup.cpu_quota"] == "none"
    assert facts_of(host_of(V2, {}))["cgroup.memory_limit_bytes"] is None


def test_the_root_group_has_no_limits() -> None:
    host = host_of(V2, {f"/proc/{PID}/cgroup": "0::/"})
    facts = facts_of(host)
    assert facts["cgroup.pids_limit"] == facts["cgroup.memory_limit_bytes"] == "none"


def test_counters_are_read_again_for_a_second_look() -> None:
    host = host_of(V1, OF_V1)
    group = group_of(host, PID)
    assert oom_kills(group)[0] == 2
    assert throttling(group)[0] == (200, 50)
