"""The SUT of one run: its servers, of which one is the ordinary case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tare.databases.cluster import Cluster
from tare.deployments import Instance
from tare.errors import RunFailed, TimedOut
from tare.run.clock import Clock, Deadline
from tare.run.server import Server

TOGETHER_S = 300.0
"""How long servers that answer may take to see each other: gossip takes seconds, asking each takes a JVM's start,
and on a machine of few CPUs all of them compete."""
_POLL_S = 0.5

Starter = Callable[[Instance], Server]
"""Starts one more server, which is told of the first."""


@dataclass
class Sut:
    """Started servers, the first of them first; `to_come` are started in turn, as each answers.

    `cluster`: how they are asked whether they see each other; `None` of a server that is alone.
    """

    servers: list[Server]
    to_come: list[Starter] = field(default_factory=list)
    cluster: Cluster | None = None

    @property
    def first(self) -> Server:
        """The one that the others are told of; all are alike, so it also stands for them."""
        return self.servers[0]

    @property
    def instances(self) -> Mapping[str, Instance]:
        """Node's name → its task."""
        return {server.node.name: server.instance for server in self.servers}

    def wait_until_ready(self, clock: Clock) -> None:
        """Start what is to come, one after the other; return when each answers a query and sees all the others.

        Raises `RunFailed` as soon as one is gone, `TimedOut`.
        """
        self.first.wait_until_ready(clock)
        while self.to_come:
            self.servers.append(self.to_come.pop(0)(self.first.instance))
            try:
                self.servers[-1].wait_until_ready(clock)
            except RunFailed:
                self.must_live("while the cluster was formed")
                raise
        if self.cluster is not None:
            self._wait_until_together(clock, self.cluster)

    def must_live(self, when: str) -> None:
        """Raise when one of them has ended."""
        for server in self.servers:
            server.must_live(when)

    def effective(self) -> Mapping[str, Mapping[str, str]]:
        """Node's name → the settings in force."""
        return {server.node.name: server.effective() for server in self.servers}

    def shut_down(self) -> None:
        """Stop all cleanly, so that their data can be copied."""
        for server in self.servers:
            server.shut_down()

    def stop(self, grace_s: float = 10.0) -> None:
        """End all, clean or not, the last started first; one that cannot be ended keeps no other from it."""
        self.to_come.clear()
        failed: Exception | None = None
        for server in reversed(self.servers):
            try:
                server.stop(grace_s)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next one is to be ended
                failed = failed or error
        if failed is not None:
            raise failed

    def _wait_until_together(self, clock: Clock, cluster: Cluster) -> None:
        deadline = Deadline(clock, TOGETHER_S)
        for server in self.servers:
            while not cluster.together(server.plan, server.inside):
                self.must_live("while the cluster was formed")
                if deadline.passed:
                    seen = f"does not see all {len(self.servers)} nodes at work"
                    raise TimedOut(f"{server.node.name} {seen} after {TOGETHER_S:g} s")
                clock.sleep(_POLL_S)
