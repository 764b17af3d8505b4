"""A container that is not there is no engine that does not answer, and hinders nothing from being taken away."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from docker.errors import APIError, ImageNotFound, NotFound
from requests.exceptions import ConnectionError as Broken

from tare.deployments import Instance, PodSetting, Task
from tare.deployments.container import container as module
from tare.deployments.container.container import Container
from tare.errors import RunFailed
from tare.images import Image, ImageConfig
from tare.sites import Completed, Output
from tare.sites.fake import FakeHost
from tare.sites.ledger import Kind
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


def engine(answer: Exception) -> Any:
    """One that answers so whenever it is asked for a container."""
    made = MagicMock()
    made.containers.get.side_effect = answer
    made.images.remove.side_effect = ImageNotFound("no such image")
    made.containers.create.side_effect = APIError("x", explanation="no space left on device")
    return made


def container(
    host: FakeHost, ledger: SqliteLedger, answer: Exception, monkeypatch: pytest.MonkeyPatch
) -> Container:
    commons = MagicMock(rootless=False, of_podman=False)
    monkeypatch.setattr(module, "SharedResources", lambda *_: commons)
    return Container(host, ledger, engine(answer))


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (NotFound("no such container"), "tare-x-s has ended: its container is gone"),
        (Broken("reset by peer"), "the engine on fake does not answer for tare-x-s: reset by peer"),
    ],
)
def test_what_is_gone_and_who_does_not_answer_are_told_apart(
    answer: Exception, told: str, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    instance = Instance(
        task=TASK, deployment="container", process=host.spawn(), container_id="1", address="x", published=None
    )
    with pytest.raises(RunFailed) as raised:
        container(host, ledger, answer, monkeypatch).exec(instance, ["true"], timeout_s=1)
    assert raised.value.what == told


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
