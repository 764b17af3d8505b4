"""The page's server over real sockets: what a peer does wrong ends its connection, and nothing else."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.unit.live.conftest import TOKEN

from tare.live.serving import open_listener, server_of


@pytest.fixture
def port(store: Path) -> Iterator[int]:
    """A server of the store, on a port of its own, until the test ends."""
    listening = open_listener(0, TOKEN)
    server = server_of(store, listening)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening.socket]})
    thread.start()
    try:
        yield listening.port
    finally:
        server.should_exit = True
        thread.join(60)
        listening.socket.close()


@pytest.mark.parametrize("headers", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_a_peer_that_closes_its_side_within_a_request_leaves_no_traceback(
    port: int, headers: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    request = f"GET /{TOKEN}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"{request}{headers}\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"{request}\r\n".encode())
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert not [record for record in caplog.records if record.exc_info], caplog.text


def _asked(port: int, *headers: str) -> bytes:
    lines = (f"Host: 127.0.0.1:{port}", "Connection: close", *headers)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall("\r\n".join((f"GET /{TOKEN}/ HTTP/1.1", *lines, "", "")).encode())
        return connection.recv(12)


def test_huge_headers_are_refused_and_the_next_visitor_is_answered(port: int) -> None:
    assert _asked(port, "X-Large: " + "x" * 200_000) in {b"HTTP/1.1 400", b"HTTP/1.1 431"}
    assert _asked(port) == b"HTTP/1.1 200"


def test_readers_who_ask_and_never_read_keep_nobody_else_out(port: int) -> None:
    request = f"GET /{TOKEN}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    with ExitStack() as readers:
        for _ in range(60):
            reader = readers.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            reader.sendall(request)
        assert _asked(port) == b"HTTP/1.1 200"


def test_more_visitors_than_there_is_room_for_are_told_so_until_some_leave(port: int) -> None:
    with ExitStack() as idle:
        for _ in range(500):
            idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        assert _asked(port) in {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    deadline = time.monotonic() + 60
    while (answer := _asked(port)) != b"HTTP/1.1 200" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert answer == b"HTTP/1.1 200"
