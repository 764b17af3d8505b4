"""What is really in force around server and client, and by which way they speak; read while both run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.deployments import Deployment, Instance
from tare.errors import TareError
from tare.run.client import Client
from tare.run.clock import Deadline
from tare.run.machine import Machine, Tree
from tare.run.server import Server
from tare.run.tree import to_tree

CONNECT_S = 5.0
"""How long a client may take to have a connection that can be seen."""
_POLL_S = 0.05


@dataclass(frozen=True)
class Seen:
    """`parity`: the observation of `sut` and `client`. `path`: `None` where no connection was seen."""

    parity: Mapping[str, Any]
    path: Tree | None
    notices: tuple[str, ...]


def witness(machine: Machine, server: Server | None, client: Client) -> Seen:
    """Wait for the client's first connection, then read both sides once: a few files of /proc, no probe traffic.

    Without a server the client is itself the SUT, and there is no path to wait for.
    """
    notices: list[str] = []
    if server is None:
        alone = observation(client.deployment, client.instance, notices)
        return Seen({"sut": alone, "client": None}, None, tuple(notices))
    path = _path(machine, server, client, notices)
    parity = {
        "sut": observation(server.deployment, server.instance, notices),
        "client": observation(client.deployment, client.instance, notices),
    }
    return Seen(parity, path, tuple(notices))


def _path(machine: Machine, server: Server, client: Client, notices: list[str]) -> Tree | None:
    deadline = Deadline(machine.clock, CONNECT_S)
    while True:
        try:
            path = machine.observe_path(server.instance, client.instance)
        except TareError as error:
            notices.append(f"the network path could not be read: {error}")
            return None
        if path is not None or deadline.passed or not client.lives:
            return path
        machine.clock.sleep(_POLL_S)


def observation(deployment: Deployment, instance: Instance, notices: list[str]) -> Tree | None:
    """What is in force around an instance now; `None`, and a notice, where it cannot be read."""
    try:
        return to_tree(deployment.observe(instance))
    except TareError as error:
        notices.append(f"what is in force around {instance.task.name} could not be read: {error}")
        return None
