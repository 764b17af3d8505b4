"""What is in force around servers and client, and how they reach each other; read while they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tare.deployments import Deployment, Instance
from tare.errors import HostSilent, PodLost, RunFailed, TareError
from tare.record.network_path import NetworkPath
from tare.record.node import NodeFacts
from tare.record.observation import Observation, Parity
from tare.record.run_record import RunRecord
from tare.run.attempt.client import Client
from tare.run.attempt.server import Server, Sut
from tare.run.machine import EndHosts, Machine

_WHOLE = "sut"


EAGER_S = 5.0
"""Seconds for which a client's first connections are looked for at every poll; afterwards once in `_RARELY_S` for
the rest of the phase, since each look costs some CPU time. A JVM on a busy machine may take a while to connect."""
_RARELY_S = 1.0
_OPENING_S = 0.5
"""Seconds until a proved path is observed for the second time: a client may wait for a CPU before it opens further
connections. Each further wait is twice as long, so that arms that open slowly, which alone are looked at more than
twice, spend little more CPU time on it than others: 4 looks in the first 5 s, 7 in a minute."""


def by_node(record: RunRecord, nodes: Mapping[str, NodeFacts]) -> Mapping[str, RunRecord]:
    """Node → the record with observations of that node alone; the record itself if the SUT is no server."""
    if not nodes:
        return {_WHOLE: record}
    return {name: _alone(record, node) for name, node in nodes.items()}


def _alone(record: RunRecord, node: NodeFacts) -> RunRecord:
    own = {
        "host": node.host or record.host,
        "effective": node.effective,
        "parity": record.parity.with_sut(node.parity),
        "path": node.path,
    }
    return record.model_copy(update=own)


@dataclass(frozen=True)
class Seen:
    """Observations of a run. `parity`: of `sut` (the first node) and `client`.

    `path`: to the first node, `None` if no connection was seen. `of_nodes`, `paths`: of every node by name; empty
    without a server.
    """

    parity: Parity
    path: NetworkPath | None = None
    of_nodes: Mapping[str, Observation | None] = field(default_factory=dict)
    paths: Mapping[str, NetworkPath | None] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


class RunObserver:
    """Observes a run until the path of a client's connections to each server is proved; reads a few files of /proc.

    An observation without a path proves nothing: over SSH, readings lie so far apart that a connection may come or
    go between them. A client opens its connections one after the other, so a path is observed again, at growing
    intervals, until the client has all the connections that it `opens`, or if that number is unknown, until no more
    appear; not in a virtual machine, where it takes seconds. What is in force is read with the first proof, since
    the client may end soon. Without a server, the client is itself the SUT and there is no path to wait for.
    `known`: nothing remains to observe.
    """

    def __init__(
        self, machine: Machine, sut: Sut | None, client: Client, *, known: bool, opens: int | None = None
    ) -> None:
        self._machine, self._sut, self._client, self._opens = machine, sut, client, opens
        self._wait_s = _OPENING_S
        self._began_s = self._next_s = machine.clock.monotonic()
        self._done = known
        self._reported: Seen | None = None
        self._paths: dict[str, NetworkPath | None] = {}
        self._settled: set[str] = set()

    def look(self, *, last: bool = False) -> Seen | None:
        """Return new observations, or `None` if there are none.

        The first report comes when all paths are proved, or without paths when they are late; a later one if the
        paths have changed. `last`: the client has ended, so everything that was not reported is.
        """
        now_s = self._machine.clock.monotonic()
        if self._done or (now_s < self._next_s and not last):
            return None
        if self._sut is None:
            self._done = True
            return self._alone()
        if last and self._reported is not None:
            self._done = True
            return self._changed(self._reported, self._sut, [])
        notices: list[str] = []
        late = now_s - self._began_s >= EAGER_S
        for server in self._sut.servers:
            if server.node.name not in self._settled:
                self._look_at(server, notices)
        proved = all(is_proved(path) for path in self._paths.values())
        self._done = last or bool(notices) or self._settled.issuperset(self._paths)
        self._next_s = now_s + (self._next_wait_s() if proved else _RARELY_S if late else 0.0)
        if self._reported is not None:
            return self._changed(self._reported, self._sut, notices) if self._done or proved else None
        if not (self._done or proved or late):
            return None
        self._reported = self._seen(self._sut, dict(self._paths), notices)
        return self._reported

    def _look_at(self, server: Server, notices: list[str]) -> None:
        """Read the path to a server; it is settled once it is proved and has gained no connections since."""
        name = server.node.name
        before, now = self._paths.get(name), self._path(server, notices)
        inside = server.instance.guest is not None or self._client.instance.guest is not None
        if is_proved(before) and (not is_proved(now) or _connections(now) <= _connections(before)):
            if self._opens is None:
                self._settled.add(name)  # no new connections, or the client has closed some
            return
        self._paths[name] = now or before
        if is_proved(now) and (inside or (self._opens is not None and _connections(now) >= self._opens)):
            self._settled.add(name)

    def _next_wait_s(self) -> float:
        """Seconds until a proved path is observed again; twice as many each time."""
        wait_s = self._wait_s
        self._wait_s = 2 * wait_s
        return wait_s

    def _changed(self, reported: Seen, sut: Sut, notices: list[str]) -> Seen | None:
        """Return the last report with the current paths, if they differ."""
        if reported.paths == self._paths and not notices:
            return None
        paths = dict(self._paths)
        self._reported = replace(reported, path=paths[sut.first.node.name], paths=paths, notices=tuple(notices))
        return self._reported

    def _alone(self) -> Seen:
        notices: list[str] = []
        seen = observation(self._client.deployment, self._client.instance, notices)
        return Seen(Parity(sut=seen, client=None), notices=tuple(notices))

    def _seen(self, sut: Sut, paths: Mapping[str, NetworkPath | None], notices: list[str]) -> Seen:
        # The client first, since it may end soon and observing a virtual machine takes seconds.
        client = observation(self._client.deployment, self._client.instance, notices)
        of_nodes = {
            server.node.name: observation(server.deployment, server.instance, notices) for server in sut.servers
        }
        first = sut.first.node.name
        return Seen(Parity(sut=of_nodes[first], client=client), paths[first], of_nodes, paths, tuple(notices))

    def _path(self, server: Server, notices: list[str]) -> NetworkPath | None:
        try:
            return self._machine.observe_path(
                server.instance, self._client.instance, EndHosts(server.host, self._client.host)
            )
        except TareError as error:
            notices.append(f"the network path could not be read: {error}")
            return None


_NOTHING_SEEN = "there was no connection to observe"
_LEAVE_A_CPU = (
    "if server and client keep all CPUs busy, the kernel may let tare wait: leave it one by their `limits.cpus`"
)
LOOKED_AT_S = 5.0
"""A phase that is shorter may end before anyone looks at its connections."""


def unproved(nodes: Mapping[str, NodeFacts], measured_s: float) -> str | None:
    """Say that a short phase ended before its connections were seen; `None` if the path is known.

    Raises `RunFailed` for any other path that is not known: such a run is not good.
    """
    why = why_unseen(nodes)
    if why is None:
        return None
    unseen = f"the network path could not be observed: {why}"
    if why == _NOTHING_SEEN and measured_s < LOOKED_AT_S:
        return unseen
    raise RunFailed(f"{unseen}; {_LEAVE_A_CPU}" if why == _NOTHING_SEEN else unseen)


def why_unseen(nodes: Mapping[str, NodeFacts]) -> str | None:
    """Return why the path of the connections to a node is unknown; `None` if all are known."""
    return next((why for node in nodes.values() if (why := _why_unseen(node.path)) is not None), None)


def _why_unseen(path: NetworkPath | None) -> str | None:
    if path is None:
        return _NOTHING_SEEN
    return "the connections could not be matched" if path.hop is None else None


def some_unseen(path: NetworkPath | None, opens: int | None) -> str | None:
    """Say that fewer connections were matched than the client opens; `None` if none is known to be missing."""
    seen = _connections(path)
    if opens is None or seen >= opens:
        return None
    return f"{seen} of the client's {opens} connections were seen; the path of the others is unknown"


def opened_to(sut: Sut | None, client: Client, opens: int | None) -> int | None:
    """Return how many connections should be seen; `None` if several nodes share them, or in a virtual machine."""
    if sut is None or len(sut.servers) > 1 or client.instance.guest or sut.first.instance.guest:
        return None
    return opens


def is_proved(path: NetworkPath | None) -> bool:
    """Whether the path of the connections is known."""
    return path is not None and path.hop is not None


def _connections(path: NetworkPath | None) -> int:
    return 0 if path is None else path.connections


def observation(deployment: Deployment, instance: Instance, notices: list[str]) -> Observation | None:
    """Read what is in force around an instance; `None`, with a notice, if that cannot be read.

    For a pod that its cluster has lost, `PodLost` is raised, and `HostSilent` where the host has no process or file
    left to ask it by: such a run fails and is tried again.
    """
    try:
        return deployment.observe(instance)
    except (PodLost, HostSilent):
        raise
    except TareError as error:
        notices.append(f"what is in force around {instance.task.name} could not be read: {error}")
        return None
