"""What a bare task has of its own host, and a container of its engine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.deployments import Deployment, Instance, Limits, Task
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
FILL = "dd if=/dev/zero of=/dev/shm/file bs=1M count=80 2>&1; rm -f /dev/shm/file; stat -f -c '%b %S' /dev/shm"


def output_of(deployment: Deployment, task: Task) -> str:
    instance = deployment.start(task)
    try:
        deployment.wait(instance, 60)
        return Path(task.output.stdout).read_text()
    finally:
        deployment.stop(instance)


def size_in(text: str) -> int:
    blocks, block_bytes = text.splitlines()[-1].split()
    return int(blocks) * int(block_bytes)


def test_bare_has_the_shared_memory_of_the_host_and_a_container_64_mib(
    bare: Deployment, container: Deployment, make_task: MakeTask, started: Started
) -> None:
    task = make_task("sh", "-c", FILL)
    seen = os.statvfs("/dev/shm")
    assert size_in(output_of(bare, task)) == seen.f_blocks * seen.f_frsize
    contained = output_of(container, task)
    assert size_in(contained) == 64 << 20
    assert "No space left on device" in contained
    for name, each in (("bare", bare), ("container", container)):
        made = started(each, make_task("sleep", "1000", name=name))
        observed = each.observe(made).shm_bytes
        assert observed == (64 << 20 if name == "container" else seen.f_blocks * seen.f_frsize)
    assert not list(Path("/dev/shm").glob("file"))


def test_a_limit_gives_every_deployment_the_same(
    deployment: Deployment, make_task: MakeTask, started: Started
) -> None:
    limits = Limits(shm_bytes=96 << 20, memlock_bytes=128 << 10)
    assert size_in(output_of(deployment, make_task("sh", "-c", FILL, limits=limits))) == 96 << 20
    seen = deployment.observe(started(deployment, make_task("sleep", "1000", name="seen", limits=limits)))
    assert seen.shm_bytes == 96 << 20
    assert seen.limits["Max locked memory"] == "131072 131072"


def test_swap_memory_nodes_and_processes_are_limited_alike(
    deployment: Deployment, make_task: MakeTask, started: Started
) -> None:
    limits = Limits(memory_bytes=64 << 20, swap_bytes=8 << 20, mems="0", pids=50)
    seen = deployment.observe(started(deployment, make_task("sleep", "1000", name="limited", limits=limits)))
    accounted = seen.swap_limit is not None  # the kernel may be started with swapaccount=0
    assert not accounted or seen.swap_limit == str(8 << 20)
    assert seen.mems_allowed == "0"
    assert seen.pids_limit == "50"
    free = deployment.observe(started(deployment, make_task("sleep", "1000", name="free")))
    assert free.swap_limit in (None, "max")


def test_what_a_program_obtained_is_read(
    bare: Deployment, container: Deployment, make_task: MakeTask, started: Started
) -> None:
    for name, each in (("bare", bare), ("container", container)):
        seen = each.observe(started(each, make_task("sleep", "1000", name=name)))
        assert (seen.disk_interface, seen.huge_pages, seen.locked_memory) == ("neither", "none", "none")
        assert seen.network_settings is not None
        assert seen.network_settings["MTU of loopback"] == Path("/sys/class/net/lo/mtu").read_text().strip()
        assert seen.network_settings["name servers"] != ""
        if seen.seccomp_filters is not None:  # since Linux 5.9
            assert (seen.seccomp_filters == "0") == (name == "bare")


def test_an_untracked_task_has_a_loopback_device_and_nothing_else(
    bare: Deployment, make_task: MakeTask, started: Started
) -> None:
    server = started(bare, make_task("sleep", "1000", name="server", network=NetworkKind.UNTRACKED))
    look = ["cat", "/proc/net/dev"]
    text = bare.exec(server, look, timeout_s=20).text
    assert re.findall(r"^ *(\w+):", text, re.MULTILINE) == ["lo"]
    client = started(bare, make_task("sleep", "1000", name="client", network=NetworkKind.SHARED, beside=server))
    one, other = (bare.observe(each).namespaces["net"] for each in (server, client))
    assert one == other
    assert f"net:[{one}]" != str(Path("/proc/self/ns/net").readlink())
    count = bare.exec(server, ["cat", "/proc/sys/net/netfilter/nf_conntrack_count"], timeout_s=20)
    assert count.code != 0 or count.text.strip() == "0"
