"""What users read of an engine that broke off or lacks its containerd: a sentence, and no text of Python's."""

from __future__ import annotations

from http.client import RemoteDisconnected
from typing import Any
from unittest.mock import MagicMock

import pytest
from docker.errors import APIError, DockerException
from requests.exceptions import ConnectionError as BrokenOff
from requests.exceptions import ReadTimeout
from urllib3.exceptions import ProtocolError

from tare.errors import EnvironmentLacks
from tare.sites.engine import Client, in_words, is_no_answer, why_away

RESET = ConnectionResetError(104, "Connection reset by peer")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BrokenOff(ProtocolError("Connection aborted.", RESET)), "Connection reset by peer"),
        (BrokenOff(ProtocolError("Connection aborted.", FileNotFoundError(2, "No such file"))), "No such file"),
        (
            BrokenOff(ProtocolError("Connection aborted.", RemoteDisconnected("Remote end closed"))),
            "Remote end closed",
        ),
        (APIError("500 Server Error", explanation="layer does not exist"), "layer does not exist"),
        (ReadTimeout("Read timed out."), "Read timed out."),
        (DockerException("connection refused"), "connection refused"),
        (EnvironmentLacks("no engine `podman`", hint="start it"), "no engine `podman` (start it)"),
    ],
)
def test_it_is_the_engine_s_explanation_or_the_system_s(error: Exception, words: str) -> None:
    assert in_words(error) == words


DIALING = 'connection error: desc = "transport: Error while dialing dial unix /x/containerd.sock: connect: refused"'


@pytest.mark.parametrize(
    ("error", "no_answer"),
    [
        (APIError("500 Server Error", explanation=f"{DIALING}: unavailable"), True),
        (APIError("500 Server Error", explanation="connection closed: unavailable"), True),
        (APIError("500 Server Error", explanation="the bridge is unavailable"), False),
        (APIError("500 Server Error", explanation="no space left on device"), False),
        (BrokenOff("Connection aborted."), True),
        (EnvironmentLacks("no engine"), False),
    ],
)
def test_an_engine_or_a_containerd_that_does_not_answer_is_told_from_a_refusal(
    error: Exception, *, no_answer: bool
) -> None:
    """The first two as Docker 20.10 said within 12 s after its containerd was killed."""
    assert is_no_answer(error) is no_answer


class Listing(Client):
    """A client of an engine with these parts."""

    def __init__(self, *names: str) -> None:
        self.api: Any = MagicMock()
        self.list(*names)

    def list(self, *names: str) -> None:
        self.api.version.return_value = {"ApiVersion": "1.41", "Components": [{"Name": name} for name in names]}


def test_an_engine_is_away_without_the_containerd_that_it_listed() -> None:
    client = Listing("Engine", "containerd", "runc", "docker-init")
    assert why_away(client) is None
    client.list("Engine", "runc", "docker-init")
    assert why_away(client) == "its containerd does not answer"
    assert client.api.close.call_count == 2
    client.list("Engine", "containerd", "runc", "docker-init")
    assert why_away(client) is None


def test_a_containerd_that_was_listed_among_an_engine_s_facts_is_missed() -> None:
    client = Listing("Engine", "containerd")
    client.version()
    client.list("Engine")
    assert why_away(client) == "its containerd does not answer"


@pytest.mark.parametrize(
    "names", [("Engine", "runc", "docker-init"), ("Engine",), ("Podman Engine", "Conmon", "OCI Runtime (crun)"), ()]
)
def test_an_engine_that_never_listed_a_containerd_is_not_away(names: tuple[str, ...]) -> None:
    """Older engines of Docker, some vendors' builds and Podman: a failed attempt would end the study for good."""
    client = Listing(*names)
    assert [why_away(client) for _ in range(2)] == [None, None]
    assert client.api.version.call_count == 2
