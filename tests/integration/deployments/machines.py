"""What tests of virtual machines share."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from tare.deployments import Instance, Task

LONG_S = 120.0
"""For what takes seconds under an emulated CPU, on a machine that is busy."""
SERVE = ("nc", "-ll", "-p", "{port}", "-e", "echo", "answered")
MakeMachine = Callable[..., Task]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answer_of(instance: Instance) -> bytes:
    deadline = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection((instance.address, instance.task.port), timeout=5) as connection:
                connection.settimeout(5)
                if received := connection.recv(100):
                    return received
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise AssertionError("nothing answers")
        time.sleep(0.1)
