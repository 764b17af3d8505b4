"""Virtual machines on real QEMU: the level that is asked for is in force, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient

from tare.deployments import DEPLOYMENTS, Bind, Deployment, Instance, Limits, MachineSetting, NetworkKind, Task
from tare.deployments.rlimits import ceilings, rlimits
from tare.deployments.sweep import sweep
from tare.errors import RunFailed, TimedOut
from tare.sites.layout import ENV
from tare.sites.local import LocalHost
from tare.sites.process import alive
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = pytest.mark.engine

SERVE = ("nc", "-ll", "-p", "{port}", "-e", "echo", "answered")


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where kernel and verdict are kept, shared by all tests of a session."""
    home = tmp_path_factory.mktemp("home")
    (home / "machines").mkdir()
    yield home
    shutil.rmtree(home)


@pytest.fixture
def vm(
    host: LocalHost, engine: DockerClient, ledger: SqliteLedger, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    monkeypatch.setenv(ENV, os.environ.get(ENV, str(machines)))
    return DEPLOYMENTS["vm"](host, ledger, engine)


@pytest.fixture
def make(make_task: Callable[..., Task], tmp_path: Path) -> Callable[..., Task]:
    """A task in a small machine, with a directory of data that is the image's user's."""

    def make(*argv: str, **given: object) -> Task:
        data = tmp_path / "storage" / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "seed").write_text("sown")
        os.chown(data, 900, 901)
        machine = MachineSetting(disk_bytes=64 << 20)
        usual = {
            "network": NetworkKind.USER,
            "port": free_port(),
            "binds": (Bind(str(data), "/data"),),
            "machine": machine,
            "limits": Limits(cpus="0", memory_bytes=96 << 20),
        }
        task = make_task(*argv, **{**usual, **given})
        return replace(task, argv=tuple(word.replace("{port}", str(task.port)) for word in task.argv))

    return make


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answer_of(instance: Instance) -> bytes:
    deadline = time.monotonic() + 20
    while True:
        try:
            with socket.create_connection((instance.address, instance.task.port), timeout=5) as connection:
                connection.settimeout(5)
                if told := connection.recv(100):
                    return told
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise AssertionError("nobody answers")
        time.sleep(0.1)


def test_a_server_on_the_user_network_answers_under_equal_limits(
    vm: Deployment, make: Callable[..., Task], started: Callable[[Deployment, Task], Instance], host: LocalHost
) -> None:
    instance = started(vm, make(*SERVE))
    assert instance.address == "127.0.0.1"
    assert answer_of(instance) == b"answered\n"
    told = vm.exec(
        instance, ["sh", "-c", "id -u; cat; cat /data/seed; echo $FROM_IMAGE"], timeout_s=30, stdin=b"in "
    )
    assert (told.code, told.stdout) == (0, b"900\nin sownyes\n")
    assert vm.exec(instance, ["sh", "-c", "exit 7"], timeout_s=30).code == 7
    seen = vm.observe(instance)
    assert seen.memory_bytes == 96 << 20
    assert seen.cpus_allowed == "0"
    wanted = rlimits(instance.task.limits, ceilings(host))["nofile"]
    assert seen.limits["Max open files"] == f"{wanted.soft} {wanted.hard}"
    assert seen.guest is not None
    assert seen.guest["cpus"] == "0"
    assert seen.guest["mounts"]["/data"].startswith("ext4 25")
    assert seen.mounts["/data"].startswith("ext4 ")
    assert seen.binary_digest == sha256(host, instance.task.image.rootfs)
    assert instance.emulated is (seen.guest["accelerator"] == "tcg")
    vm.stop(instance)
    assert not alive(host, instance.process)


def sha256(host: LocalHost, rootfs: str) -> str:
    return "sha256:" + host.run(["sha256sum", f"{rootfs}/bin/busybox"], timeout_s=30).text.split()[0]


def test_a_tap_reaches_the_machine_and_a_full_disk_a_late_program_and_a_killed_qemu_are_told(
    vm: Deployment,
    make: Callable[..., Task],
    started: Callable[[Deployment, Task], Instance],
    host: LocalHost,
    ledger: SqliteLedger,
) -> None:
    instance = started(vm, make(*SERVE, network=NetworkKind.TAP))
    assert instance.address.startswith("10.231.")
    assert answer_of(instance) == b"answered\n"
    full = vm.exec(instance, ["dd", "if=/dev/zero", "of=/data/fill", "bs=1M", "count=100"], timeout_s=120)
    assert full.code == 1
    assert b"No space left" in full.stderr
    with pytest.raises(TimedOut):
        vm.exec(instance, ["sleep", "60"], timeout_s=1)
    os.kill(instance.process.pid, signal.SIGKILL)
    with pytest.raises(RunFailed, match="ended before its task did"):
        vm.wait(instance, 30)
    swept = sweep(ledger.entries(), {"local": host}, None, ledger)
    assert swept.failed == []
    assert not list(Path("/sys/class/net").glob("tar[bt]*"))


def test_a_program_that_is_not_there_is_told(vm: Deployment, make: Callable[..., Task]) -> None:
    with pytest.raises(RunFailed, match=r"ended at once with 125: .*cannot execute /no/such"):
        vm.start(make("/no/such"))
