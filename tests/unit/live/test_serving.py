"""The page's server over real sockets: what a peer does wrong ends its connection, and nothing else."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
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
        thread.join(20)
        listening.socket.close()


@pytest.mark.parametrize("headers", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_a_peer_that_closes_its_side_within_a_request_leaves_no_traceback(
    port: int, headers: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: tare-live-{port}={TOKEN}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"{request}{headers}\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"{request}\r\n".encode())
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert not [record for record in caplog.records if record.exc_info], caplog.text
