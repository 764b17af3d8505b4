"""A child of the server that the kernel kills for want of memory is named as that, in failed and in good runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.deployments import Limits, Task
from tare.errors import NotComparable, RunFailed
from tare.run.attempt.context import RunContext
from tare.run.attempt.job import Draft
from tare.run.attempt.memory_kills import explained, group_oom_kills
from tare.run.attempt.server import Node, Sut, nodes_of
from tare.sites.fake import FakeHost

V1 = "30 29 0:26 / /sys/fs/cgroup/memory rw shared:1 - cgroup cgroup rw,memory\n"
V2 = "30 29 0:26 / /sys/fs/cgroup rw shared:1 - cgroup2 cgroup2 rw\n"
COUNTER = {
    "v1": ("/sys/fs/cgroup/memory/tare/x/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"),
    "v2": ("/sys/fs/cgroup/tare/x/memory.events", "low 0\nhigh 0\nmax 9\noom 4\noom_kill {}\noom_group_kill 0\n"),
}
PID = 41


class Machine(FakeHost):
    """A host with one control group, whose kills the test sets."""

    def __init__(self, kind: str) -> None:
        self.file, self.words = COUNTER[kind]
        self.kills: int | None = 0
        groups = "4:memory:/tare/x\n" if kind == "v1" else "0::/tare/x\n"
        self.texts = {f"/proc/{PID}/cgroup": groups, "/proc/self/mountinfo": V1 if kind == "v1" else V2}

    def read(self, path: str) -> bytes | None:
        if path == self.file and self.kills is not None:
            return self.words.format(self.kills).encode()
        return self.texts[path].encode() if path in self.texts else None


def server(machine: Machine, node: Node) -> Any:
    limits = Limits(memory_bytes=128 << 20)
    task = SimpleNamespace(limits=limits)
    instance = SimpleNamespace(guest=None, process=SimpleNamespace(pid=PID), task=cast("Task", task))
    return SimpleNamespace(host=machine, instance=instance, node=node, lives=True, inside=_no_answer, plan=_PLAN)


def _no_answer(*_: object, **__: object) -> None:
    raise RunFailed("nothing answers here")


_PLAN = SimpleNamespace(data_dir="/data")
CONTEXT = cast(
    "RunContext",
    SimpleNamespace(
        data_mount_of=lambda _: SimpleNamespace(path="/srv"),
        workdir=SimpleNamespace(host=SimpleNamespace(run=_no_answer), raw="/raw"),
        workdir_for_client=SimpleNamespace(host=SimpleNamespace(run=_no_answer), raw="/raw"),
    ),
)


def fail(sut: Sut, draft: Draft, error: Exception, kill: Machine | None = None) -> None:
    """A phase in which the kernel kills one process, or none, before it fails."""
    with explained(CONTEXT, sut, draft):
        if kill is not None:
            kill.kills = (kill.kills or 0) + 1
        raise error


def sut_on(*machines: Machine) -> Sut:
    return cast(
        "Sut",
        SimpleNamespace(servers=[server(*each) for each in zip(machines, nodes_of(len(machines)), strict=True)]),
    )


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_a_failure_after_a_kill_names_it_and_the_limit(kind: str) -> None:
    machine, draft = Machine(kind), Draft()
    machine.kills = 2  # of earlier phases: they explain nothing now
    error = RunFailed("the client ended with 1: server closed the connection unexpectedly")
    with pytest.raises(RunFailed) as caught:
        fail(sut_on(machine), draft, error, machine)
    assert caught.value.what == (
        "the kernel killed a process of the server, out of memory (its limit is 128 MiB): "
        "the client ended with 1: server closed the connection unexpectedly"
    )
    assert draft.oom_kills == 1


def test_a_failure_without_a_kill_keeps_its_reason() -> None:
    machine, draft = Machine("v1"), Draft()
    machine.kills = 5
    with pytest.raises(RunFailed, match=r"^the client ended with 1$"):
        fail(sut_on(machine), draft, RunFailed("the client ended with 1"))
    assert draft.oom_kills == 0


def test_what_is_told_of_the_server_itself_is_not_told_twice() -> None:
    machine = Machine("v2")
    reason = "the kernel killed the server, out of memory (its limit is 128 MiB)"
    with pytest.raises(RunFailed) as caught:
        fail(sut_on(machine), Draft(), RunFailed(reason), machine)
    assert caught.value.what == reason


def test_kills_of_both_phases_of_a_good_run_add_up_over_nodes() -> None:
    first, second, draft = Machine("v1"), Machine("v2"), Draft()
    with explained(CONTEXT, sut_on(first, second), draft):
        first.kills = 1
    with explained(CONTEXT, sut_on(first, second), draft):
        second.kills = 2
    assert draft.oom_kills == 3


def test_a_kill_of_the_warm_up_explains_a_failure_of_the_measure_phase() -> None:
    machine, draft = Machine("v1"), Draft()
    with explained(CONTEXT, sut_on(machine), draft):
        machine.kills = 1
    with pytest.raises(
        RunFailed, match=r"^the kernel killed a process of the server, out of memory .*: recovering$"
    ):
        fail(sut_on(machine), draft, RunFailed("recovering"))
    assert draft.oom_kills == 1


def test_the_killed_node_of_a_cluster_is_named() -> None:
    first, second = Machine("v1"), Machine("v1")
    node = nodes_of(2)[1].name
    with pytest.raises(RunFailed, match=f"a process of {node}, out of memory"):
        fail(sut_on(first, second), Draft(), RunFailed("lost"), second)


def test_a_counter_that_cannot_be_read_is_unknown_and_not_zero() -> None:
    machine, draft = Machine("v1"), Draft()
    machine.kills = None
    with explained(CONTEXT, sut_on(machine), draft):
        pass
    assert draft.oom_kills is None
    with pytest.raises(RunFailed, match=r"^lost$"):
        fail(sut_on(machine), draft, RunFailed("lost"))


def test_a_refusal_is_not_explained_by_a_kill() -> None:
    machine = Machine("v1")
    with pytest.raises(NotComparable, match=r"^another image$"):
        fail(sut_on(machine), Draft(), NotComparable("another image"), machine)


def test_a_program_without_a_server_has_no_count() -> None:
    draft = Draft()
    with explained(CONTEXT, None, draft):
        pass
    assert draft.oom_kills is None


def test_the_root_group_has_no_counter() -> None:
    machine = Machine("v2")
    machine.texts[f"/proc/{PID}/cgroup"] = "0::/\n"
    assert group_oom_kills(machine, server(machine, nodes_of(1)[0]).instance) is None
