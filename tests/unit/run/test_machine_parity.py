"""What is held against what of virtual machines: their disks and CPUs, as QEMU and the kernel tell."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.parity.test_compare import TOKEN, found, parity, record, settings, study

from tare.record.network_path import Hop, NetworkPath
from tare.record.run_record import RunRecord
from tare.run.parity.declared import undeclared
from tare.study.model import VmSpec
from tare.study.values import NetworkKind


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ({}, None),
        ({"disk_cache": "writeback"}, "SUT: disk cache: directsync declared, writeback in force"),
        ({"disk_aio": "threads"}, "SUT: disk I/O engine: native declared, threads in force"),
        ({"disk_cache": None}, "SUT: disk cache: directsync declared, none for all of its disks in force"),
        ({"disk_aio": None}, "SUT: disk I/O engine: native declared, none for all of its disks in force"),
        (
            {"cpu_threads": ["0", "0-1"]},
            "SUT: pinned virtual CPUs declared, their threads may use the CPUs 0 and 0-1",
        ),
    ],
)
def test_a_machine_that_is_not_as_declared_is_named(inside: dict[str, Any], told: str | None) -> None:
    vm = VmSpec(cache="directsync", aio="native", pin=True)
    guest = {"disk_cache": "directsync", "disk_aio": "native", "cpu_threads": ["0", "1"], **inside}
    in_force = parity(guest=guest)
    placed = settings("vm", network=NetworkKind.USER, vm=vm)
    assert undeclared(placed, in_force, NetworkPath(Hop.USER), TOKEN) == (() if told is None else (told,))
    (other,) = undeclared(placed, parity(), NetworkPath(Hop.TAP), TOKEN)
    assert other == "network path: network user promises user, the connections take tap"


def test_two_machines_may_differ_in_what_the_study_varies_alone() -> None:
    machine = settings("vm", network=NetworkKind.USER).model_dump(mode="json")

    def inside(arm: str, cache: str, **more: str) -> RunRecord:
        guest = {"disk_cache": cache, "kernel": "linux-6.1", "mounts": {"/data": "ext4 254:16"}, **more}
        return record(arm, sut={"guest": guest, "speculation": {"Spec": "own"}}, settings=machine)

    assert found(record("bare"), inside("host", "none")) == []
    assert found(inside("host", "none"), inside("bridge", "unsafe"), study(("sut.vm.cache",))) == []
    assert found(inside("host", "none"), inside("host", "unsafe")) == [
        "SUT: virtual machine: disk_cache: none in host, unsafe in host"
    ]
    assert found(inside("host", "none"), inside("host", "none", kernel="linux-6.2")) != []
    assert found(inside("host", "none"), inside("bridge", "unsafe"), study(("sut.vm.aio",))) != []


def test_a_container_in_a_machine_may_differ_in_what_it_is() -> None:
    def inside(arm: str, deployment: str, **more: Any) -> RunRecord:
        placed = settings(deployment, network=NetworkKind.USER).model_dump(mode="json")
        guest = {"kernel": "linux-6.1", **more}
        seen = {"guest": guest, "speculation": {"Spec": "own"}, "seccomp": "2" if more else "0"}
        return record(arm, sut=seen, settings=placed)

    boxed = {"runtime": "crun 1.8.1", "root": "overlay"}
    container = inside("bridge", "vm-container", container=boxed)
    deployed = study(("sut.deployment",))
    assert found(inside("host", "vm"), container, deployed) == []
    assert found(record("bare"), container, deployed) == []
    other = inside("bridge", "vm-container", container={**boxed, "runtime": "crun 1.9"})
    (told,) = found(container, other, study(("sut.vm.cache",)))
    assert told.startswith("SUT: virtual machine: container: ")
