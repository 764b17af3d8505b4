"""An exec that an engine does not start is told as that, not as the program's exit code. Found by `make chaos`."""

from __future__ import annotations

import socket
from typing import Any
from unittest.mock import MagicMock

import pytest
import requests
from docker.errors import APIError
from urllib3.connection import HTTPConnection
from urllib3.response import HTTPResponse

from tare.deployments.container import engine_exec as module
from tare.errors import EngineSilent, RunFailed
from tare.sites import Completed
from tare.sites.fake import FakeHost


def executed(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> Completed:
    engine = MagicMock()
    engine.api.exec_inspect.return_value = {"ExitCode": 126, "Running": False}
    monkeypatch.setattr(module, "_converse", lambda *_: raw)
    return module.engine_exec(engine, FakeHost(), "0123456789abcdef", ["mariadb"], timeout_s=9, user="", stdin=b"")


def framed(words: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(words).to_bytes(4, "big") + words


@pytest.mark.parametrize("raw", [b"", framed(b"transport is closing: unavailable\r\n")])
def test_an_exec_that_was_not_started_names_the_engine(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of an engine whose containerd was killed came as the program's: `Redis did not let tare read …`."""
    with pytest.raises(EngineSilent, match="the engine on fake did not run mariadb in container 0123456789ab"):
        executed(monkeypatch, raw)


def test_what_a_runtime_says_of_a_program_that_it_refuses_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    words = b"exec failed: permission denied"
    done = executed(monkeypatch, framed(words))
    assert (done.code, done.stdout) == (126, words)


@pytest.mark.parametrize(
    "raw",
    [
        framed(b"mongo: unavailable\n"),
        framed(b"trying\r\nmongo: unavailable\r\n"),
        framed(b"mongo: unavailable\r\n", stream=2),
        framed(b"mongo: unavailable\r\n") + framed(b"giving up\n", stream=2),
    ],
)
def test_a_program_that_prints_such_words_itself_is_not_blamed_on_the_engine(
    raw: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert executed(monkeypatch, raw).code == 126


@pytest.mark.parametrize("call", ["exec_create", "exec_start"])
@pytest.mark.parametrize(
    ("words", "silent"), [("connection closed: unavailable", True), ("no such container", False)]
)
def test_an_engine_that_refuses_an_exec_for_its_containerd_does_not_answer(
    call: str, words: str, *, silent: bool
) -> None:
    engine = MagicMock()
    getattr(engine.api, call).side_effect = APIError("500 Server Error", explanation=words)
    with pytest.raises(RunFailed) as raised:
        module.engine_exec(engine, FakeHost(), "0123456789abcdef", ["true"], timeout_s=9, user="", stdin=b"")
    assert isinstance(raised.value, EngineSilent) is silent


def test_an_exec_leaves_no_answer_that_fails_when_it_is_freed() -> None:
    """Python 3.13 prints such a failure: `Exception ignored in: <http.client.HTTPResponse …>`, after each exec."""
    engine_side, own_side = socket.socketpair()
    engine_side.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n" + framed(b"PONG\n"))
    engine_side.shutdown(socket.SHUT_WR)
    http = HTTPConnection("engine")
    http.sock = own_side
    http.putrequest("POST", "/exec/1/start")
    http.endheaders()
    answer = http.response_class(own_side, method="POST")
    answer.begin()
    response = requests.Response()
    response.raw = HTTPResponse(answer, preload_content=False, original_response=answer)
    connection: Any = answer.fp.raw  # as docker-py hands it out
    connection._response = response
    engine = MagicMock()
    engine.api.exec_start.return_value = connection
    engine.api.exec_inspect.return_value = {"ExitCode": 0, "Running": False}
    done = module.engine_exec(engine, FakeHost(), "0123", ["redis-cli"], timeout_s=9, user="", stdin=b"")
    assert done.stdout == b"PONG\n"
    answer.close()  # what the interpreter does when it is freed
    engine_side.close()
