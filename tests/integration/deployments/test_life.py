"""Starting, running inside, waiting, stopping: the same answers from every deployment, and nothing left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.cgroups import groups_called

from tare.deployments import CONTAINERD, Bind, Deployment, Instance, Task
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.process import alive
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]


def test_exit_code_and_both_outputs_are_kept_apart(deployment: Deployment, make_task: MakeTask) -> None:
    task = make_task("sh", "-c", "sleep 0.2; printf 'out\\nno newline'; echo err >&2; exit 7")
    instance = deployment.start(task)
    try:
        assert deployment.wait(instance, 60) == 7
        assert Path(task.output.stdout).read_bytes() == b"out\nno newline"
        assert Path(task.output.stderr).read_bytes() == b"err\n"
    finally:
        deployment.stop(instance)


def test_the_first_process_is_the_program_itself(
    deployment: Deployment, make_task: MakeTask, started: Started, host: Host
) -> None:
    instance = started(deployment, make_task("sleep", "1000"))
    assert alive(host, instance.process)
    assert host.read(f"/proc/{instance.process.pid}/cmdline") == b"sleep\x001000\x00"
    assert {int(Path(each).name) for each in Path(f"/proc/{instance.process.pid}/fd").iterdir()} == {0, 1, 2}


def test_wait_times_out_and_can_be_called_again(deployment: Deployment, make_task: MakeTask) -> None:
    instance = deployment.start(make_task("sh", "-c", "sleep 2; exit 3"))
    try:
        with pytest.raises(TimedOut, match=r"did not end within 0\.3 s"):
            deployment.wait(instance, 0.3)
        assert deployment.wait(instance, 60) == 3
        assert deployment.wait(instance, 60) == 3
    finally:
        deployment.stop(instance)


def test_exec_has_input_outputs_code_and_user(
    deployment: Deployment, make_task: MakeTask, started: Started
) -> None:
    instance = started(deployment, make_task("sleep", "1000", env={"GIVEN": "yes"}))
    script = "cat; id -un; echo $GIVEN; echo err >&2; exit 5"
    done = deployment.exec(instance, ["sh", "-c", script], timeout_s=30, stdin=b"in\n")
    assert (done.code, done.stdout, done.stderr) == (5, b"in\ndb\nyes\n", b"err\n")
    assert deployment.exec(instance, ["id", "-un"], timeout_s=30, user="root").stdout == b"root\n"


def test_exec_loses_no_byte_of_a_large_answer(
    deployment: Deployment, make_task: MakeTask, started: Started
) -> None:
    instance = started(deployment, make_task("sleep", "1000"))
    for size in (0, 1, 65_536, 3_000_000):
        done = deployment.exec(instance, ["head", "-c", str(size), "/dev/zero"], timeout_s=60)
        assert len(done.stdout) == size


def test_exec_that_takes_too_long_is_killed(deployment: Deployment, make_task: MakeTask, started: Started) -> None:
    instance = started(deployment, make_task("sleep", "1000"))
    with pytest.raises(TimedOut):
        deployment.exec(instance, ["sleep", "4711"], timeout_s=0.5)
    deadline = time.monotonic() + 60
    while b"4711" in deployment.exec(instance, ["ps", "-o", "args"], timeout_s=30).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_exec_in_a_task_that_has_ended_tells_its_last_words(
    deployment: Deployment, make_task: MakeTask, host: Host
) -> None:
    instance = deployment.start(make_task("sh", "-c", "sleep 0.3; echo the disk is full >&2; exit 1"))
    try:
        assert deployment.wait(instance, 60) == 1
        how = " with exit code 1" if instance.deployment == "container" else ""
        with pytest.raises(RunFailed, match=f"has ended{how}: the disk is full"):
            deployment.exec(instance, ["true"], timeout_s=30)
    finally:
        deployment.stop(instance)


def test_a_task_that_ends_at_once_has_started_and_tells_its_end(
    deployment: Deployment, make_task: MakeTask, host: Host
) -> None:
    for turn in range(10):  # seen while it runs in some turns and when it has ended in others
        script = f"echo turn {turn}; echo the table is there >&2; exit 7"
        instance = deployment.start(make_task("sh", "-c", script))
        try:
            assert deployment.wait(instance, 60) == 7
            output = instance.task.output
            assert host.read(output.stdout) == f"turn {turn}\n".encode()
            assert host.read(output.stderr) == b"the table is there\n"
        finally:
            deployment.stop(instance)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"argv": ("/no/such/program",)}, "no/such/program"),
        ({"user": "nobody-knows"}, "nobody-knows"),
        ({"binds": (Bind("/no/such/source", "/data"),)}, "/no/such/source"),
    ],
)
def test_what_cannot_be_started_says_why_and_leaves_nothing(
    deployment: Deployment, make_task: MakeTask, change: dict[str, object], reason: str
) -> None:
    task = replace(make_task("sleep", "1000"), **change)  # type: ignore[arg-type]  # whatever a case changes
    with pytest.raises(RunFailed, match=f"cannot be started: .*{reason}"):
        deployment.start(task)


def test_a_bare_task_is_refused_a_network_of_its_own(bare: Deployment, make_task: MakeTask) -> None:
    with pytest.raises(EnvironmentLacks, match="is on no engine's network, so it cannot use bridge"):
        bare.start(make_task("sleep", "1000", network=NetworkKind.BRIDGE))


def test_stop_asks_first(deployment: Deployment, make_task: MakeTask) -> None:
    task = make_task("sh", "-c", "trap 'echo asked; exit 0' TERM; while :; do sleep 0.05; done")
    instance = deployment.start(task)
    time.sleep(0.3)
    deployment.stop(instance, grace_s=20)
    assert Path(task.output.stdout).read_text() == "asked\n"


def test_stop_kills_what_does_not_listen_and_what_ran_away(
    deployment: Deployment, make_task: MakeTask, host: Host
) -> None:
    script = "trap '' TERM; setsid sleep 4712 & sleep 4713 & wait; wait"
    instance = deployment.start(make_task("sh", "-c", script))
    deadline = time.monotonic() + 60
    while b"4712" not in deployment.exec(instance, ["ps", "-o", "args"], timeout_s=30).stdout:
        assert time.monotonic() < deadline
    deployment.stop(instance, grace_s=1)
    left = host.run(["pgrep", "-f", "^sleep 471[23]"], timeout_s=60, check=False).text
    assert left == ""


def test_stop_can_be_called_again_and_after_the_container_has_gone(
    deployment: Deployment, make_task: MakeTask, host: Host, engine: DockerClient
) -> None:
    instance = deployment.start(make_task("sleep", "1000"))
    if instance.container_id is not None:
        engine.containers.get(instance.container_id).remove(force=True)
    else:
        host.run(["kill", "-9", str(instance.process.pid)], timeout_s=60)
    deployment.stop(instance)
    deployment.stop(instance)


def test_all_is_noted_before_it_is_made(
    deployment: Deployment, make_task: MakeTask, started: Started, ledger: Ledger, parent: str
) -> None:
    instance = started(deployment, make_task("sleep", "1000"))
    kinds = {(entry.kind, entry.ident) for entry in ledger.entries()}
    name = instance.task.name
    assert (Kind.CGROUP, parent) in kinds
    if instance.container_id is not None:
        assert (Kind.CONTAINER, name) in kinds
    elif instance.deployment == CONTAINERD:
        assert any(kind is Kind.CONTAINERD and ident.startswith(f"{name}@/") for kind, ident in kinds)
        assert (Kind.PATH, f"/run/tare-task.{name}") in kinds
    else:
        assert {(Kind.CGROUP, f"{parent}/{name}"), (Kind.PATH, f"/run/tare-task.{name}")} <= kinds


def test_the_parent_stays_until_the_last_has_left(
    deployment: Deployment, make_task: MakeTask, started: Started, parent: str
) -> None:
    first = deployment.start(make_task("sleep", "1000", name="first"))
    started(deployment, make_task("sleep", "1000", name="second"))
    deployment.stop(first, grace_s=1)
    assert groups_called(Path(parent).name)


def test_a_container_of_somebody_else_is_never_touched(
    container: Deployment, make_task: MakeTask, engine: DockerClient
) -> None:
    task = make_task("sleep", "1000")
    foreign = engine.containers.create(task.image.engine_id or "", entrypoint=["sleep"], name=task.name)
    try:
        with pytest.raises(RunFailed, match="cannot be started"):
            container.start(task)
        foreign.reload()
        assert foreign.status == "created"
    finally:
        foreign.remove(force=True)
