"""What lies around a program: compared where both runs have it, and explained by the key that sets it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.parity.test_compare import TOKEN, parity, record, settings, study
from tests.unit.run.parity.test_compare import found as differences_of

from tare.run.parity.declared import undeclared
from tare.study.model import LimitsSpec

MORE = LimitsSpec(memory="1G", swap="1M", mems="0", pids=9)
IN_FORCE: dict[str, Any] = {
    "memory_bytes": 1 << 30,
    "swap_limit": "1048576",
    "pids_limit": "9",
    "mems_allowed": "0",
}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, []),
        ({"swap_limit": "max"}, ["SUT: swap limit: 1048576 declared, max in force"]),
        ({"swap_limit": None}, ["SUT: swap limit: 1048576 declared, none in force"]),
        ({"pids_limit": "max"}, ["SUT: limit of processes: 9 declared, max in force"]),
        ({"mems_allowed": "0-1"}, ["SUT: NUMA nodes of its memory: 0 declared, 0-1 in force"]),
    ],
)
def test_limits_are_as_declared(changes: dict[str, Any], why: list[str]) -> None:
    placed = settings(limits=MORE)
    in_force = parity(**{**IN_FORCE, **changes})
    assert [each for each in undeclared(placed, in_force, None, TOKEN) if "cgroup" not in each] == why


@pytest.mark.parametrize(
    ("key", "one", "other", "factor", "name"),
    [
        ("swap_limit", "0", "max", "sut.limits.swap", "swap limit"),
        ("mems_allowed", "0", "0-1", "sut.limits.mems", "NUMA nodes of its memory"),
        ("memory_policy", "default", "interleave:0-1", "sut.image", "NUMA policy of its memory"),
        ("pids_limit", "max", "2048", "sut.limits.pids", "limit of processes"),
        ("security_label", "docker-default (enforce)", "unconfined", "sut.engine", "label of AppArmor or SELinux"),
        ("seccomp_filters", "1", "0", "sut.confinement.seccomp", "number of seccomp filters"),
        ("disk_interface", "io_uring", "libaio", "sut.confinement.seccomp", "interface to disks"),
        ("disk_interface", "io_uring", "neither", "sut.settings.innodb_use_native_aio", "interface to disks"),
        ("huge_pages", "some", "none", "sut.settings.huge_pages", "explicit huge pages held"),
        ("locked_memory", "some", "none", "sut.limits.memlock", "locked memory"),
        ("swappiness", "60", "0", "sut.cgroup", "swappiness"),
        ("hugetlb_limit", "max", "0", "sut.cgroup", "limit of explicit huge pages"),
        ("io_weight", "default 100", "default 500", "sut.cgroup", "weight of disk operations"),
        ("log_driver", "json-file", "local", "sut.log_driver", "log driver"),
    ],
)
def test_each_is_compared_and_explained_by_its_factor(
    key: str, one: str, other: str, factor: str, name: str
) -> None:
    there, here = record("host", sut={key: one}), record("bridge", sut={key: other})
    assert differences_of(there, here) == [f"SUT: {name}: {one} in host, {other} in bridge"]
    assert differences_of(there, here, study((factor,))) == []
    assert differences_of(record("host"), here) == []  # of an older tare, which did not read it


def test_engines_limit_processes_in_their_own_way_and_swap_as_bare_has_it() -> None:
    bare = record("bare", sut={"pids_limit": "max", "swap_limit": "0"})
    assert differences_of(bare, record("bridge", sut={"pids_limit": "2048", "swap_limit": "0"})) == []
    assert differences_of(bare, record("bridge", sut={"swap_limit": "max"})) == [
        "SUT: swap limit: 0 in bare, max in bridge"
    ]


def test_a_filter_of_a_container_may_keep_it_from_io_uring_by_nature() -> None:
    bare = record("bare", sut={"disk_interface": "io_uring", "seccomp_filters": "0"})
    assert differences_of(bare, record("bridge", sut={"disk_interface": "libaio", "seccomp_filters": "1"})) == []
