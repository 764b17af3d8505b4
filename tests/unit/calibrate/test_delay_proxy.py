"""The proxy as a program of its own, between a client and a server that sends everything back."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tare.calibrate.injections import PROGRAM

DELAY_US = 3000
MESSAGES = 20


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    while data := peer.recv(4096):
                        peer.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)


Proxied = Callable[[float], int]


@pytest.fixture
def proxied(echo: int, tmp_path: Path) -> Iterator[Proxied]:
    """Starts the proxy with a delay; its port."""
    started: list[subprocess.Popen[bytes]] = []

    def start(delay_us: float) -> int:
        spec = {
            "address": "127.0.0.1",
            "port": echo,
            "delay_us": delay_us,
            "cgroup_procs": [],
            "log": str(tmp_path / "log"),
        }
        program = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM), json.dumps(spec)], stdout=subprocess.PIPE
        )
        started.append(program)
        assert program.stdout is not None
        return int(program.stdout.readline())

    yield start
    for program in started:
        program.kill()
        program.communicate(timeout=60)


def talk(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as stream:
        for n in range(MESSAGES):
            stream.sendall(b"%05d" % n)
            assert stream.recv(64) == b"%05d" % n


def logged(path: Path) -> list[dict[str, float]]:
    """The lines of the log, when the connections' have come."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and path.read_text().endswith("\n")):
        time.sleep(0.01)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_message_of_the_client_is_held_back_and_the_log_says_for_how_long(
    proxied: Proxied, tmp_path: Path
) -> None:
    began = time.monotonic()
    talk(proxied(DELAY_US))
    took_s = time.monotonic() - began
    (line,) = logged(tmp_path / "log")
    assert line["messages"] == MESSAGES
    assert line["held_ns"] >= MESSAGES * DELAY_US * 1000
    assert line["held_ns"] / 1e9 <= took_s


def test_without_a_delay_next_to_nothing_is_held_back(proxied: Proxied, tmp_path: Path) -> None:
    talk(proxied(0))
    (line,) = logged(tmp_path / "log")
    assert line["messages"] == MESSAGES
    assert line["held_ns"] < MESSAGES * DELAY_US * 1000


def test_connections_come_one_after_the_other_and_each_has_a_line(proxied: Proxied, tmp_path: Path) -> None:
    port = proxied(0)
    talk(port)
    assert len(logged(tmp_path / "log")) == 1
    talk(port)
    deadline = time.monotonic() + 60
    while len(logged(tmp_path / "log")) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    first, second = logged(tmp_path / "log")
    assert first["accepted_at"] < second["accepted_at"]
