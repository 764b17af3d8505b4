"""The servers of one run: started, asked until they answer, read back, watched, stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tare.databases import Database, ServerPlan
from tare.databases.extensions import Cluster
from tare.deployments import Deployment, Instance
from tare.deployments.vm.guest import GuestHost, guest_end
from tare.errors import RunFailed, TimedOut
from tare.run.attempt.death import death_of, last_words
from tare.run.attempt.ports import Lookout
from tare.run.clock import Clock, Deadline
from tare.sites import Completed, Host
from tare.sites.process import alive

READY_S = 300.0
"""How long a server may take from its start to its first answer, crash recovery of a clean copy included.

A JVM that is ready in 8 s on a machine left alone takes minutes where several start on two busy CPUs."""
SHUTDOWN_S = 300.0
BEFORE_AN_ANSWER = "before it answered its first query"
_POLL_S, _SELDOM_S = 0.05, 20.0
TOGETHER_S = 300.0
"""How long servers that answer may take to see each other: gossip takes seconds, asking each takes a JVM's start,
and on a machine of few CPUs all of them compete."""
_CLUSTER_POLL_S = 0.5


@dataclass(frozen=True)
class Node:
    """`name`: of its task, its raw files and its trace. `part`: what sets its data apart, "" of the only node."""

    name: str
    part: str
    number: int
    """From 1."""

    def below(self, directory: str) -> str:
        """The node's own directory in one that holds those of all."""
        return f"{directory}/{self.part}" if self.part else directory

    def before(self, file: str) -> str:
        """The name of a raw file that each node has."""
        return f"{self.name}.{file}" if self.part else file

    def named(self, text: str) -> str:
        """A name that no other node has, made from one of the run."""
        return f"{text}-{self.part}" if self.part else text


def nodes_of(count: int, name: str = "sut") -> tuple[Node, ...]:
    """One called `sut`, or several called `sut-1`, `sut-2` and so on."""
    if count == 1:
        return (Node(name, "", 1),)
    return tuple(Node(f"{name}-{number}", str(number), number) for number in range(1, count + 1))


def gone(node: Node, reason: str, when: str, words: str) -> RunFailed:
    """What is said of a server that has ended."""
    which = f", node {node.name}" if node.part else ""
    return RunFailed(
        f"{reason} {when}{which}; its last output: {words}",
        hint=f"{node.name}.stdout and {node.name}.stderr among the raw files have all of it",
    )


@dataclass(frozen=True)
class Server:
    """A started server and how it is spoken to."""

    host: Host
    deployment: Deployment
    database: Database
    plan: ServerPlan
    node: Node
    instance: Instance
    oom_kills_before: int | None = None
    """The machine's count just before the start."""

    def inside(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        """Run a program inside the server's root."""
        return self.deployment.exec(self.instance, argv, timeout_s=timeout_s, stdin=stdin)

    @property
    def lives(self) -> bool:
        """Whether the very process that was started still runs; in a virtual machine it ends before that does."""
        guest = self.instance.guest
        if guest is not None and guest_end(self.host, guest.status) is not None:
            return False
        return alive(self.host, self.instance.process)

    def wait_until_ready(self, clock: Clock, seconds: float = READY_S) -> None:
        """Ask until a query is answered; `RunFailed` as soon as the server is gone.

        A question is a client that starts, on the CPUs on which the server does: while nothing is seen to listen on
        its port it is asked seldom.
        """
        deadline, asked, lookout = Deadline(clock, seconds), Deadline(clock, _SELDOM_S), self._lookout()
        while True:
            if asked.passed or _open(lookout):
                if self._answers():
                    return
                asked = Deadline(clock, _SELDOM_S)
            self.must_live(BEFORE_AN_ANSWER)
            if deadline.passed:
                raise TimedOut(f"the server did not answer a query within {seconds:g} s")
            clock.sleep(_POLL_S)

    def must_live(self, when: str) -> None:
        """Raise when the server has ended; one that something restarted is another process and counts as ended."""
        if not self.lives:
            reason = death_of(self.host, self.deployment, self.instance, self.oom_kills_before)
            raise gone(self.node, reason, when, last_words(self.host, self.instance.task.output))

    def effective(self) -> Mapping[str, str]:
        """The settings in force."""
        return self.database.effective(self.plan, self.inside)

    def shut_down(self) -> None:
        """Stop it cleanly, so that its data can be copied; `RunFailed` when it ends with an error."""
        self.database.shutdown(self.plan, self.inside)
        code = self.deployment.wait(self.instance, SHUTDOWN_S)
        if code != 0:
            raise RunFailed(f"the server ended with {code} when it was shut down")

    def stop(self, grace_s: float = 10.0) -> None:
        """End it, clean or not, and remove what was made for it."""
        self.deployment.stop(self.instance, grace_s)

    def _lookout(self) -> Lookout:
        """Of a virtual machine inside, for outside QEMU listens, or nobody does."""
        guest = self.instance.guest
        if guest is None:
            return Lookout(self.host, self.instance.process.pid, self.plan.port)
        return Lookout(GuestHost.of(self.host, self.instance), guest.pid, self.plan.port)

    def _answers(self) -> bool:
        try:
            return self.database.ready(self.plan, self.inside)
        except RunFailed:
            return False  # an exec into a server that is still coming up, or has just gone: `lives` knows which


def _open(lookout: Lookout) -> bool:
    """Also where it cannot be seen."""
    try:
        return lookout.listens() is not False
    except RunFailed:
        return False  # the machine may have just ended: `Server.lives` knows


Starter = Callable[[Instance], Server]
"""Starts one more server, which is given the first."""


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
        """The one that the others join; all are alike, so it also stands for them."""
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
            while not cluster.is_complete(server.plan, server.inside):
                self.must_live("while the cluster was formed")
                if deadline.passed:
                    seen = f"does not see all {len(self.servers)} nodes at work"
                    raise TimedOut(f"{server.node.name} {seen} after {TOGETHER_S:g} s")
                clock.sleep(_CLUSTER_POLL_S)
