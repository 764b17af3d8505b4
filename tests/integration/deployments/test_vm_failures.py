"""Virtual machines that fail on real QEMU: each is told with the console's tail, and nothing is left behind."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.deployments.machines import LONG_S, SERVE, MakeMachine, answer_of

import tare.deployments.vm.vm as module
from tare.deployments import Bind, Deployment, Instance, Limits, MachineSetting, Task
from tare.deployments.vm.command import qemu_argv
from tare.deployments.vm.network import links_of
from tare.errors import RunFailed, TimedOut
from tare.run.attempt.death import death_of, oom_kills
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.sites.local import own_process
from tare.sites.process import alive
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

Started = Callable[[Deployment, Task], Instance]


def ended(host: Host, instance: Instance) -> bool:
    deadline = time.monotonic() + LONG_S
    while alive(host, instance.process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_a_machine_that_hangs_at_boot_is_given_up(
    vm: Deployment, make: MakeMachine, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "qemu_argv", lambda *given: (*qemu_argv(*given), "-S"))  # its CPUs never begin
    monkeypatch.setattr(module, "BOOT_S", 2.0)
    task = make(*SERVE, network=NetworkKind.TAP)
    with pytest.raises(TimedOut, match="the virtual machine did not answer within 2 s: it printed nothing"):
        vm.start(task)
    assert not list(ledger.entries())
    assert not [link for link in links_of(task, own_process()) if Path("/sys/class/net", link).exists()]


@pytest.fixture
def small(host: Host, tmp_path: Path) -> Iterator[Path]:
    """A file system of 40 MiB, there until what was started has been stopped."""
    place = tmp_path / "small"
    place.mkdir()
    host.run(["mount", "-t", "tmpfs", "-o", "size=40M", "tmpfs", str(place)], timeout_s=60)
    yield place
    host.run(["umount", str(place)], timeout_s=60)


@pytest.mark.slow
def test_a_full_host_is_an_error_inside_and_a_panic_is_told(
    small: Path, vm: Deployment, make: MakeMachine, started: Started, host: Host
) -> None:
    (small / "data").mkdir()
    given = MachineSetting(cache="writeback", disk_bytes=128 << 20)
    task = make("sleep", "600", binds=(Bind(str(small / "data"), "/data"),), machine=given)
    instance = started(vm, task)
    fill = ["dd", "if=/dev/zero", "of=/data/fill", "bs=1M", "count=60", "conv=fsync"]
    full = vm.exec(instance, fill, timeout_s=LONG_S, user="root")
    assert full.code == 1, full.stderr
    assert re.search(rb"Read-only file system|Input/output error|I/O error", full.stderr), full.stderr
    assert alive(host, instance.process)
    with pytest.raises(RunFailed, match="has ended"):
        vm.exec(instance, ["sh", "-c", "echo c > /proc/sysrq-trigger"], timeout_s=LONG_S, user="root")
    assert ended(host, instance)
    with pytest.raises(RunFailed, match=r"before its task did: console: .*Kernel panic - not syncing: sysrq"):
        vm.wait(instance, LONG_S)
    vm.stop(instance)
    assert b"Kernel panic" in Path(f"{task.output.stderr}.console").read_bytes()


@pytest.mark.slow
def test_a_task_beyond_its_memory_is_killed_by_the_machines_kernel(
    vm: Deployment, make: MakeMachine, started: Started, host: Host
) -> None:
    before = oom_kills(host)
    task = make("sh", "-c", "sleep 2; exec tail /dev/zero", limits=Limits(cpus="0", memory_bytes=64 << 20))
    instance = started(vm, task)
    assert ended(host, instance)
    death = death_of(host, vm, instance, before)
    assert death == "the virtual machine's kernel killed the server, out of memory (its limit is 64 MiB)"


@pytest.mark.slow
@pytest.mark.parametrize(
    "level",
    [
        ("directsync", "native", b"write through"),
        ("writethrough", "threads", b"write through"),
        ("unsafe", "io_uring", b"write back"),
    ],
    ids=str,
)
def test_cache_mode_engine_and_pins_are_in_force(
    level: tuple[str, str, bytes], vm: Deployment, make: MakeMachine, started: Started
) -> None:
    cache, aio, write_cache = level
    given = MachineSetting(cache=cache, aio=aio, disk_bytes=64 << 20, pin=True)
    instance = started(vm, make(*SERVE, machine=given, limits=Limits(cpus="0-1", memory_bytes=96 << 20)))
    assert answer_of(instance) == b"answered\n"
    seen = vm.observe(instance)
    assert seen.guest is not None
    assert (seen.guest.disk_cache, seen.guest.disk_aio) == (cache, aio)
    assert seen.guest.cpu_threads == ("0", "1")
    assert seen.guest.cpus == "0-1"
    inside = vm.exec(instance, ["cat", "/sys/block/vdb/queue/write_cache"], timeout_s=LONG_S)
    assert inside.stdout.strip() == write_cache
    disk = f"{instance.task.binds[0].source}.disk"
    opened = [
        descriptor
        for descriptor in Path(f"/proc/{instance.process.pid}/fd").iterdir()
        if str(descriptor.readlink()) == disk
    ]
    info = Path(f"/proc/{instance.process.pid}/fdinfo/{opened[0].name}").read_text()
    flags = next(int(line.split()[1], 8) for line in info.splitlines() if line.startswith("flags:"))
    assert bool(flags & 0o40000) == (cache == "directsync")  # O_DIRECT of x86's fcntl.h
