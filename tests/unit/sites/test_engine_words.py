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
from tare.sites.engine import in_words, is_no_answer, why_away

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


@pytest.mark.parametrize(
    ("api", "names", "why"),
    [
        ("1.41", ("Engine", "containerd", "runc", "docker-init"), None),
        ("1.41", ("Engine", "runc", "docker-init"), "its containerd does not answer"),
        ("1.9", ("Engine",), None),
        ("1.39", ("Engine",), None),
        ("1.41", ("Podman Engine", "Conmon", "OCI Runtime (crun)"), None),
        (None, (), None),
    ],
)
def test_an_engine_is_away_without_the_containerd_that_it_lists(
    api: str | None, names: tuple[str, ...], why: str | None
) -> None:
    """Older engines of Docker list none, and Podman has none."""
    client: Any = MagicMock()
    client.version.return_value = {"ApiVersion": api, "Components": [{"Name": name} for name in names]}
    assert why_away(client) == why
    client.api.close.assert_called_once_with()
