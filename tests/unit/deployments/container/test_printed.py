"""Of a container that prints for ever, a bounded part is read, and no wait is without a limit. Found by attack."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker import APIClient
from docker.errors import NotFound
from requests.exceptions import RequestException

from tare.deployments.container import printed as module
from tare.deployments.container.printed import kept_of, printed

GOOD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def frame(text: bytes) -> bytes:
    return b"\1\0\0\0" + len(text).to_bytes(4, "big") + text


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


@contextmanager
def engine(*answer: bytes, before_close: Callable[[], object] = lambda: None) -> Iterator[Any]:
    """A container of an engine that answers one request with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                for part in answer:
                    connection.sendall(part)
                before_close()

        thread = threading.Thread(target=serve)
        thread.start()
        api = APIClient(f"tcp://127.0.0.1:{server.getsockname()[1]}", version="1.41", timeout=1)
        try:
            yield SimpleNamespace(id="c0ffee", client=SimpleNamespace(api=api))
        finally:
            api.close()
            thread.join()


def test_an_output_is_read_whole_wherever_its_frames_are_cut() -> None:
    whole = frame(b"one\n") + frame(b"") + frame(b"two\n")
    for cut in range(len(whole) + 1):
        parts = [chunk(part) for part in (whole[:cut], whole[cut:]) if part]
        with engine(GOOD, *parts, b"0\r\n\r\n") as container:
            assert printed(container, stdout=True) == b"one\ntwo\n"


def test_an_engine_that_stops_in_the_middle_is_not_waited_for() -> None:
    going = threading.Event()
    with engine(GOOD, chunk(frame(b"one\n")), before_close=lambda: going.wait(60)) as container:
        with pytest.raises(RequestException):
            printed(container, stdout=True)
        going.set()


@pytest.mark.parametrize(
    "end", [b"", chunk(frame(b"two")[:6]) + b"0\r\n\r\n", chunk(frame(b"two")[:9]) + b"0\r\n\r\n"]
)
def test_a_log_that_breaks_off_is_no_whole_output(end: bytes) -> None:
    with engine(GOOD, chunk(frame(b"one\n")), end) as container, pytest.raises(RequestException):
        printed(container, stdout=True)


def test_an_error_of_the_engine_within_a_log_is_no_output() -> None:
    error = b"\3" + frame(b"Error grabbing logs: unexpected EOF")[1:]
    with engine(GOOD, chunk(frame(b"one\n") + error), b"0\r\n\r\n") as container, pytest.raises(RequestException):
        printed(container, stdout=True)


def test_a_container_that_is_gone_is_told_as_the_library_does() -> None:
    gone = b'HTTP/1.1 404 Not Found\r\nContent-Length: 24\r\n\r\n{"message":"No such one"}'
    with engine(gone) as container, pytest.raises(NotFound):
        printed(container, stdout=False)


def test_of_a_long_output_beginning_and_end_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    monkeypatch.setattr(module, "LAST_BYTES", 4)
    assert kept_of(iter([b"abcdefgh", b"ij"])) == b"abcdefghij"
    cut = kept_of(iter([b"abcdefgh", b"ijkl", b"mnopqr", b"st"]))
    assert cut == b"abcdefghij\n[tare: the output was cut here, 20 bytes in all]\nqrst"


def test_one_without_an_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    endless = cast("Iterator[bytes]", iter(lambda: b"abc", b""))
    assert kept_of(endless).startswith(
        b"abcabcabca\n[tare: the output was cut here, its end lies beyond 162 bytes]"
    )
