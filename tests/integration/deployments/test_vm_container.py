"""A container in a virtual machine on real QEMU: it is one, equally limited, its data where they belong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.deployments.machines import LONG_S, SERVE, MakeMachine, answer_of
from tests.integration.deployments.test_vm import sha256

from tare.deployments import Deployment, Instance, Limits, Task
from tare.deployments.defaults import environment
from tare.deployments.rlimits import ceilings, rlimits
from tare.errors import RunFailed, TimedOut
from tare.run.attempt.death import death_of, oom_kills
from tare.sites import Host
from tare.sites.process import alive

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Started = Callable[[Deployment, Task], Instance]


def test_a_server_in_a_container_in_a_machine_answers_under_equal_limits(
    boxed: Deployment, make: MakeMachine, started: Started, host: Host
) -> None:
    instance = started(boxed, make(*SERVE))
    assert answer_of(instance) == b"answered\n"
    seen = boxed.observe(instance)
    assert seen.guest is not None
    container = seen.guest.container
    assert container is not None
    assert container.root == "overlay"
    assert container.network == "host"
    assert (container.runtime or "").startswith("crun ")
    assert seen.memory_bytes == 96 << 20
    wanted = rlimits(instance.task.limits, ceilings(host))["nofile"]
    assert seen.limits["Max open files"] == f"{wanted.soft} {wanted.hard}"
    assert seen.seccomp == "2"
    assert seen.guest.mounts["/data"].startswith("ext4 25")
    assert seen.mounts["/data"].startswith("ext4 ")
    assert seen.binary_digest == sha256(host, instance.task.image.rootfs)
    around = {"HOME": "/data", "HOSTNAME": instance.task.name}
    assert seen.environment == {**environment(instance.task), **around}
    assert instance.emulated is (seen.guest.accelerator == "tcg")
    script = "id -u; id -g; cat; cat /data/seed; echo $FROM_IMAGE $HOME; hostname; touch /x 2>&1; ls /data"
    done = boxed.exec(instance, ["sh", "-c", script], timeout_s=LONG_S, stdin=b"in ")
    assert done.code == 0, done.stderr
    first, *_ = done.stdout.partition(b"lost+found")
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


def test_what_ends_inside_is_told_as_anywhere(
    boxed: Deployment, make: MakeMachine, started: Started, host: Host
) -> None:
    with pytest.raises(RunFailed, match=r"ended at once with 1(26|27)?: .*no/such"):
        boxed.start(make("/no/such"))
    before = oom_kills(host)
    task = make("sh", "-c", "sleep 2; exec tail /dev/zero", limits=Limits(cpus="0", memory_bytes=64 << 20))
    instance = started(boxed, task)
    assert boxed.wait(instance, LONG_S) == 137
    death = death_of(host, boxed, instance, before)
    assert death == "the virtual machine's kernel killed the server, out of memory (its limit is 64 MiB)"
