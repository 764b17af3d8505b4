"""A container in a virtual machine on real QEMU: it is one, equally limited, its data where they belong."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.deployments.machines import LONG_S, SERVE, MakeMachine, answer_of
from tests.integration.deployments.test_vm import sha256

from tare.deployments import DEPLOYMENTS, Deployment, Instance, Layer, Limits, NetworkKind, Task
from tare.deployments.rlimits import ceilings, rlimits
from tare.errors import RunFailed, TimedOut
from tare.run.death import death_of, oom_kills
from tare.sites.layout import ENV
from tare.sites.local import LocalHost
from tare.sites.process import alive
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Started = Callable[[Deployment, Task], Instance]


@pytest.fixture
def boxed(
    host: LocalHost, engine: DockerClient, ledger: SqliteLedger, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    monkeypatch.setenv(ENV, os.environ.get(ENV, str(machines)))
    return DEPLOYMENTS["vm-container"](host, ledger, engine)


def test_a_server_in_a_container_in_a_machine_answers_under_equal_limits(
    boxed: Deployment, make: MakeMachine, started: Started, host: LocalHost
) -> None:
    instance = started(boxed, make(*SERVE))
    assert answer_of(instance) == b"answered\n"
    seen = boxed.observe(instance)
    assert seen.guest is not None
    assert seen.guest["container"]["root"] == "overlay"
    assert seen.guest["container"]["network"] == "host"
    assert seen.guest["container"]["runtime"].startswith("crun ")
    assert seen.memory_bytes == 96 << 20
    wanted = rlimits(instance.task.limits, ceilings(host))["nofile"]
    assert seen.limits["Max open files"] == f"{wanted.soft} {wanted.hard}"
    assert seen.seccomp == "2"
    assert seen.guest["mounts"]["/data"].startswith("ext4 25")
    assert seen.mounts["/data"].startswith("ext4 ")
    assert seen.binary_digest == sha256(host, instance.task.image.rootfs)
    assert instance.emulated is (seen.guest["accelerator"] == "tcg")
    script = "id -u; id -g; cat; cat /data/seed; echo $FROM_IMAGE $HOME; hostname; touch /x 2>&1; ls /data"
    told = boxed.exec(instance, ["sh", "-c", script], timeout_s=LONG_S, stdin=b"in ")
    assert told.code == 0, told.stderr
    first, *_ = told.stdout.partition(b"lost+found")
    name = instance.task.name.encode()
    assert first == b"900\n901\nin sownyes /data\n" + name + b"\ntouch: /x: Read-only file system\n"
    assert boxed.exec(instance, ["id", "-u"], timeout_s=LONG_S, user="root").stdout == b"0\n"
    assert boxed.exec(instance, ["sh", "-c", "exit 7"], timeout_s=LONG_S).code == 7
    with pytest.raises(TimedOut):
        boxed.exec(instance, ["sleep", "77"], timeout_s=3)
    listed = boxed.exec(instance, ["ps", "-o", "pid,args"], timeout_s=LONG_S).stdout.decode()
    assert "sleep 77" not in listed
    assert re.search(r"^ +1 nc -ll", listed, re.MULTILINE), listed
    boxed.stop(instance)
    assert not alive(host, instance.process)
    assert Path(instance.task.output.stderr).read_bytes() == b""


@pytest.mark.parametrize("copy_up", [False, True])
def test_data_in_a_layer_lie_on_the_overlay_of_the_machine(
    copy_up: bool, boxed: Deployment, make: MakeMachine, started: Started
) -> None:
    task = make(*SERVE, network=NetworkKind.TAP)
    layer = Layer(task.binds[0].source, "/data", copy_up=copy_up)
    instance = started(boxed, replace(task, binds=(), layers=(layer,)))
    assert answer_of(instance) == b"answered\n"
    seen = boxed.observe(instance)
    assert seen.mounts["/data"].startswith("overlay ")
    assert (seen.guest or {})["disk_files"]["/data"].startswith("ext4 ")
    script = "cat /data/seed; echo more >> /data/seed; cat /data/seed; stat -c %u:%g /data; ls -A /data"
    told = boxed.exec(instance, ["sh", "-c", script], timeout_s=LONG_S, user="root")
    assert (told.code, told.stdout) == (0, b"sownsownmore\n900:901\nseed\n"), told.stderr


def test_what_ends_inside_is_told_as_anywhere(
    boxed: Deployment, make: MakeMachine, started: Started, host: LocalHost
) -> None:
    with pytest.raises(RunFailed, match=r"ended at once with 1(26|27)?: .*no/such"):
        boxed.start(make("/no/such"))
    before = oom_kills(host)
    task = make("sh", "-c", "sleep 2; exec tail /dev/zero", limits=Limits(cpus="0", memory_bytes=64 << 20))
    instance = started(boxed, task)
    assert boxed.wait(instance, LONG_S) == 137
    told = death_of(host, boxed, instance, before)
    assert told == "its virtual machine's kernel killed the server for want of memory (its limit is 64 MiB)"
