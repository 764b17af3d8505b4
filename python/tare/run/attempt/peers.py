"""Network paths between the nodes of a cluster that have hosts of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tare.errors import TareError
from tare.record.network_path import NetworkPath
from tare.run.attempt.server import Server, Sut
from tare.run.clock import Deadline
from tare.run.machine import EndHosts, Machine
from tare.run.parity.observed import is_proved

_LOOK_S, _POLL_S = 3.0, 0.1
"""Time to observe connections: a connection between nodes may close and reopen meanwhile."""

Peers = Mapping[str, Mapping[str, NetworkPath | None]]
"""Node → node that it connects to → network path; `None` where no connection was seen."""


def peers_of(machine: Machine, sut: Sut) -> Peers:
    """Inspect the sockets of every pair of nodes on both hosts until each path is proved or time is up."""
    deadline = Deadline(machine.clock, _LOOK_S)
    found: dict[str, dict[str, NetworkPath | None]] = {server.node.name: {} for server in sut.servers}
    while True:
        for one, other in _pairs(sut):
            paths = found[one.node.name]
            if not is_proved(paths.get(other.node.name)):
                paths[other.node.name] = _path(machine, one, other) or paths.get(other.node.name)
        if deadline.passed or not unproved_pairs(found):
            return found
        machine.clock.sleep(_POLL_S)


def unproved_pairs(peers: Peers) -> tuple[str, ...]:
    """Name the pairs of nodes without a proved path in either direction; one connection serves both directions."""
    seen = {
        frozenset({one, other}) for one, paths in peers.items() for other, path in paths.items() if is_proved(path)
    }
    names = list(peers)
    return tuple(
        f"{one} and {other}"
        for number, one in enumerate(names)
        for other in names[number + 1 :]
        if frozenset({one, other}) not in seen
    )


def _pairs(sut: Sut) -> Iterator[tuple[Server, Server]]:
    for one in sut.servers:
        yield from ((one, other) for other in sut.servers if other is not one)


def _path(machine: Machine, one: Server, other: Server) -> NetworkPath | None:
    """Observe the path from one node to another, at the port for traffic between nodes."""
    member = other.plan.member
    if member is None or member.peer_port is None:
        return None
    listening = replace(other.instance, task=replace(other.instance.task, port=member.peer_port), published=None)
    try:
        return machine.observe_path(listening, one.instance, EndHosts(other.host, one.host))
    except TareError:
        return None
