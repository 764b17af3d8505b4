"""A container that is not there is no engine that does not answer, and hinders nothing from being taken away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from docker.errors import APIError, ImageNotFound, NotFound
from requests.exceptions import ConnectionError as Broken
from requests.exceptions import ReadTimeout

from tare.deployments import Instance, PodSetting, Task
from tare.deployments.container import container as module
from tare.deployments.container.container import Container
from tare.errors import EngineSilent, RunFailed, TimedOut
from tare.images import Image, ImageConfig
from tare.sites import Completed, Output
from tare.sites.fake import FakeHost
from tare.sites.ledger import Kind
from tare.sites.marks import RUN_LABEL
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import NetworkKind

TASK = Task(
    "tare-x-s",
    Image("x", "y", "/", "sha256:1", ImageConfig()),
    ("sleep", "1"),
    Output("/o", "/e"),
    "tare/x",
    network=NetworkKind.CLUSTER_IP,
    port=5000,
    pod=PodSetting(),
)


ALONE = replace(TASK, pod=None, network=NetworkKind.HOST)


def engine(answer: object) -> Any:
    """One that answers so whenever it is asked for a container."""
    made = MagicMock()
    made.containers.get.side_effect = answer if isinstance(answer, Exception) else lambda _: answer
    made.images.remove.side_effect = ImageNotFound("no such image")
    made.containers.create.side_effect = APIError("x", explanation="no space left on device")
    return made


def running(**failing: Exception) -> Any:
    """A container of the task's; of its methods, what each fails with."""
    made = MagicMock(status="running", labels={RUN_LABEL: TASK.cgroup_parent})
    made.logs.return_value = b""
    for name, error in failing.items():
        getattr(made, name).side_effect = error
    return made


def instance_on(host: FakeHost) -> Instance:
    return Instance(
        task=ALONE, deployment="container", process=host.spawn(), container_id="1", address="x", published=None
    )


def container(host: FakeHost, ledger: SqliteLedger, answer: object, monkeypatch: pytest.MonkeyPatch) -> Container:
    commons = MagicMock(rootless=False, of_podman=False)
    monkeypatch.setattr(module, "SharedResources", lambda *_: commons)
    return Container(host, ledger, engine(answer))


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (NotFound("no such container"), "tare-x-s has ended: its container is gone"),
        (Broken("reset by peer"), "the engine on fake does not answer for tare-x-s: reset by peer"),
    ],
)
def test_what_is_gone_and_who_does_not_answer_are_told_apart(
    answer: Exception, message: str, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    with pytest.raises(RunFailed) as raised:
        container(host, ledger, answer, monkeypatch).exec(instance_on(host), ["true"], timeout_s=1)
    assert raised.value.what == message


def test_a_container_that_ended_tells_its_exit_code_before_its_last_words(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: after a dockerd was killed, only Redis's "bye bye" was told."""
    host, ended = FakeHost(), running()
    ended.status, ended.attrs, ended.logs.return_value = "exited", {"State": {"ExitCode": 0}}, b"bye bye\n"
    with pytest.raises(RunFailed, match=r"^tare-x-s has ended with exit code 0: bye bye$"):
        container(host, ledger, ended, monkeypatch).exec(instance_on(host), ["true"], timeout_s=1)


def test_an_engine_that_does_not_answer_a_start_is_the_reason(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: it was told as `Connection aborted` of a container that cannot be started."""
    host = FakeHost(answers={("uname", "-m"): Completed((), 0, b"x86_64\n")})
    deployment = container(host, ledger, NotFound("no such container"), monkeypatch)
    monkeypatch.setattr(deployment, "_start", MagicMock(side_effect=Broken("Connection aborted.")))
    with pytest.raises(RunFailed, match="the engine on fake does not answer for tare-x-s: Connection aborted"):
        deployment.start(TASK)


def test_an_engine_without_its_containerd_does_not_answer_a_start(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    deployment = container(host, ledger, NotFound("no such container"), monkeypatch)
    closed = APIError("500 Server Error", explanation="connection closed: unavailable")
    monkeypatch.setattr(deployment, "_start", MagicMock(side_effect=closed))
    with pytest.raises(EngineSilent, match="the engine on fake does not answer for tare-x-s: connection closed"):
        deployment.start(ALONE)


def test_a_pod_whose_container_was_never_made_is_taken_away_whole(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost(answers={("uname", "-m"): Completed((), 0, b"x86_64\n")})
    for kind, ident in (
        (Kind.CONTAINER, "tare-x-s-pod"),
        (Kind.IMAGE, "tare/pause:tare-x-s"),
        (Kind.RULES, "cni:tare-x-s"),
        (Kind.CGROUP, "tare/x/kubepods/podtare-x-s"),
    ):
        ledger.note(kind, ident, host="fake")
    deployment = container(host, ledger, NotFound("no such container"), monkeypatch)
    with pytest.raises(RunFailed, match="tare-x-s cannot be started: no space left on device"):
        deployment.start(TASK)
    assert ledger.entries() == ()


def test_what_cannot_be_stopped_is_taken_away_by_force(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, there = FakeHost(), running(stop=ReadTimeout("read timed out"))
    ledger.note(Kind.CONTAINER, TASK.name, host="fake")
    deployment = container(host, ledger, there, monkeypatch)
    with pytest.raises(RunFailed, match="tare-x-s cannot be stopped: read timed out"):
        deployment.stop(instance_on(host))
    there.remove.assert_called_once_with(v=True, force=True)
    assert ledger.entries() == ()


@pytest.mark.parametrize("why", [Broken("reset by peer"), APIError("x", explanation="it is busy")])
def test_what_cannot_be_taken_away_hides_no_reason_and_stays_noted(
    why: Exception, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    deployment = container(host, ledger, running(remove=why), monkeypatch)
    with pytest.raises(RunFailed, match="tare-x-s cannot be started: no space left on device"):
        deployment.start(ALONE)
    assert [entry.ident for entry in ledger.entries()] == [TASK.name]
    with pytest.raises(RunFailed, match=r"the container tare-x-s cannot be removed: (reset by peer|it is busy)"):
        deployment.stop(instance_on(host))


@pytest.mark.parametrize(
    ("why", "kind", "message"),
    [
        (ReadTimeout("x"), TimedOut, "tare-x-s did not end within 3 s"),
        (Broken("UnixHTTPConnectionPool: Read timed out."), TimedOut, "tare-x-s did not end within 3 s"),
        (
            Broken("Remote end closed"),
            EngineSilent,
            "the engine on fake does not answer for tare-x-s: Remote end closed",
        ),
        (APIError("x", explanation="no such container"), RunFailed, "cannot be waited for: no such container"),
    ],
)
def test_an_engine_that_goes_while_a_task_is_waited_for_is_no_task_that_lasts(
    why: Exception, kind: type[RunFailed], message: str, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    deployment = container(host, ledger, running(wait=why), monkeypatch)
    with pytest.raises(RunFailed, match=message) as raised:
        deployment.wait(instance_on(host), 3.0)
    assert type(raised.value) is kind
