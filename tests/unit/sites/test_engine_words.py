"""What users read of an engine that broke off: a sentence, and no text of Python's."""

from __future__ import annotations

import pytest
from docker.errors import APIError, DockerException
from requests.exceptions import ConnectionError as BrokenOff
from requests.exceptions import ReadTimeout
from urllib3.exceptions import ProtocolError

from tare.errors import EnvironmentLacks
from tare.sites.engine import in_words

RESET = ConnectionResetError(104, "Connection reset by peer")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BrokenOff(ProtocolError("Connection aborted.", RESET)), "Connection reset by peer"),
        (BrokenOff(ProtocolError("Connection aborted.", FileNotFoundError(2, "No such file"))), "No such file"),
        (APIError("500 Server Error", explanation="layer does not exist"), "layer does not exist"),
        (ReadTimeout("Read timed out."), "Read timed out."),
        (DockerException("connection refused"), "connection refused"),
        (EnvironmentLacks("no engine `podman`", hint="start it"), "no engine `podman` (start it)"),
    ],
)
def test_it_is_the_engine_s_explanation_or_the_system_s(error: Exception, words: str) -> None:
    assert in_words(error) == words
