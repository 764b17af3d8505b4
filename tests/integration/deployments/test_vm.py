"""Virtual machines on real QEMU: the level that is asked for is in force, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.integration.deployments.machines import SERVE, answer_of

from tare.analyze.guest import UNITS, counted
from tare.deployments import Bind, Deployment, Instance, Task
from tare.deployments.defaults import environment
from tare.deployments.rlimits import ceilings, rlimits
from tare.deployments.sweep import sweep
from tare.deployments.vm.network import links_of
from tare.errors import RunFailed, TimedOut
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.sites.local import own_process
from tare.sites.process import alive
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine


def test_a_server_on_the_user_network_answers_under_equal_limits(
    vm: Deployment, make: Callable[..., Task], started: Callable[[Deployment, Task], Instance], host: Host
) -> None:
    began_ns = time.monotonic_ns()
    instance = started(vm, make(*SERVE))
    assert instance.address == "127.0.0.1"
    assert answer_of(instance) == b"answered\n"
    done = vm.exec(
        instance, ["sh", "-c", "id -u; cat; cat /data/seed; echo $FROM_IMAGE"], timeout_s=30, stdin=b"in "
    )
    assert (done.code, done.stdout) == (0, b"900\nin sownyes\n")
    assert vm.exec(instance, ["sh", "-c", "exit 7"], timeout_s=30).code == 7
    seen = vm.observe(instance)
    assert seen.memory_bytes == 96 << 20
    assert seen.cpus_allowed == "0"
    wanted = rlimits(instance.task.limits, ceilings(host))["nofile"]
    assert seen.limits["Max open files"] == f"{wanted.soft} {wanted.hard}"
    assert seen.guest is not None
    assert seen.guest.cpus == "0"
    assert seen.guest.mounts["/data"].startswith("ext4 25")
    assert seen.mounts["/data"].startswith("ext4 ")
    assert seen.binary_digest == sha256(host, instance.task.image.rootfs)
    around = {"HOME": "/data", "HOSTNAME": instance.task.name}
    assert seen.environment == {**environment(instance.task), **around}
    assert instance.emulated is (seen.guest.accelerator == "tcg")
    assert seen.guest.clock is not None
    assert seen.guest.clock.from_ns <= seen.guest.clock.to_ns <= time.monotonic_ns()
    vm.stop(instance)
    assert not alive(host, instance.process)
    raw = Path(f"{instance.task.output.stderr}.guest.jsonl").read_bytes()
    samples = counted(raw, seen.guest.clock)
    assert min(samples["from_ns"].to_list()) >= began_ns
    assert max(samples["to_ns"].to_list()) <= time.monotonic_ns()
    charged = samples.filter((pl.col("quantity") == "memory_bytes") & (pl.col("subject") == "sut"))["value"]
    assert 0 < max(charged.to_list()) <= 96 << 20
    assert set(UNITS) <= set(samples["quantity"])


def sha256(host: Host, rootfs: str) -> str:
    return "sha256:" + host.run(["sha256sum", f"{rootfs}/bin/busybox"], timeout_s=60).text.split()[0]


def test_a_tap_reaches_the_machine_and_a_full_disk_a_late_program_and_a_killed_qemu_are_told(
    vm: Deployment,
    make: Callable[..., Task],
    started: Callable[[Deployment, Task], Instance],
    host: Host,
    ledger: Ledger,
) -> None:
    instance = started(vm, make(*SERVE, network=NetworkKind.TAP))
    assert instance.address.startswith("10.231.")
    assert answer_of(instance) == b"answered\n"
    full = vm.exec(instance, ["dd", "if=/dev/zero", "of=/data/fill", "bs=1M", "count=100"], timeout_s=120)
    assert full.code == 1
    assert b"No space left" in full.stderr
    with pytest.raises(TimedOut):
        vm.exec(instance, ["sleep", "600"], timeout_s=1)
    os.kill(instance.process.pid, signal.SIGKILL)
    with pytest.raises(RunFailed, match="ended before its task did"):
        vm.wait(instance, 30)
    swept = sweep(ledger.entries(), {host.name: host}, None, ledger)
    assert swept.failed == []
    assert not [link for link in links_of(instance.task, own_process()) if Path("/sys/class/net", link).exists()]


def test_a_program_that_is_not_there_is_told(vm: Deployment, make: Callable[..., Task]) -> None:
    with pytest.raises(RunFailed, match=r"ended at once with 125: .*cannot execute /no/such"):
        vm.start(make("/no/such"))


def test_what_a_task_leaves_below_run_is_brought_back(
    vm: Deployment, make: Callable[..., Task], tmp_path: Path
) -> None:
    own = tmp_path / "own place"
    own.mkdir()
    os.chown(own, 900, 901)
    leave = "echo left >/run/own/log; mkdir /run/own/more; echo too >/run/own/more/log"
    instance = vm.start(make("sh", "-c", f"{leave}; sleep 3; exit 3", binds=(Bind(str(own), "/run/own"),)))
    assert vm.wait(instance, 120) == 3
    vm.stop(instance)
    assert (own / "log").read_text() == "left\n"
    assert (own / "more" / "log").read_text() == "too\n"
