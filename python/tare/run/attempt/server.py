"""The servers of one run: start, wait until they answer, read settings, watch, stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tare.databases import Database, ServerPlan
from tare.databases.extensions import Cluster
from tare.deployments import Deployment, Instance
from tare.deployments.vm.guest import GuestHost, guest_end
from tare.errors import RunFailed, TimedOut
from tare.run.attempt.death import death_of, last_output
from tare.run.attempt.ports import PortCheck
from tare.run.clock import Clock, Deadline
from tare.sites import Completed, Host, Output
from tare.sites.process import alive

READY_S = 300.0
"""Time limit from a server's start to its first answer, recovery of a clean copy included.

A JVM that is ready in 8 s on an idle machine takes minutes when several start on two busy CPUs.
"""
SHUTDOWN_S = 300.0
BEFORE_AN_ANSWER = "before it answered its first query"
_POLL_S, _SELDOM_S = 0.05, 20.0
TOGETHER_S = 300.0
"""Time limit until servers that answer see each other: gossip takes seconds, each query starts a JVM, and on a
machine with few CPUs all of them compete."""
_CLUSTER_POLL_S = 0.5
_COPY_S = 60.0
LOG_FILE = "server.log"
"""Name, in its run directory, of the log that a server writes itself."""


@dataclass(frozen=True)
class Node:
    """One node of a SUT, alone or in a cluster.

    `name`: of its task, its raw files and its trace. `part`: sets its data apart, "" of a single node.
    """

    name: str
    part: str
    number: int
    """Counted from 1."""

    def below(self, directory: str) -> str:
        """Return the node's own directory below a common one."""
        return f"{directory}/{self.part}" if self.part else directory

    def before(self, file: str) -> str:
        """Return the name of a raw file that each node has."""
        return f"{self.name}.{file}" if self.part else file

    def named(self, text: str) -> str:
        """Return a name unique to the node, made from a name of the run."""
        return f"{text}-{self.part}" if self.part else text


def nodes_of(count: int, name: str = "sut") -> tuple[Node, ...]:
    """Return one node called `sut`, or several called `sut-1`, `sut-2` and so on."""
    if count == 1:
        return (Node(name, "", 1),)
    return tuple(Node(f"{name}-{number}", str(number), number) for number in range(1, count + 1))


def server_gone(node: Node, reason: str, when: str, words: str) -> RunFailed:
    """Make the error for a server that has ended. `words`: its last output."""
    which = f", node {node.name}" if node.part else ""
    return RunFailed(
        f"{reason} {when}{which}; its last output: {words}",
        hint=f"{node.name}.stdout and {node.name}.stderr among the raw files contain all of it",
    )


@dataclass(frozen=True)
class Server:
    """A started server and how to reach it."""

    host: Host
    deployment: Deployment
    database: Database
    plan: ServerPlan
    node: Node
    instance: Instance
    oom_kills_before: int | None = None
    """The machine's count of OOM kills just before the start."""

    def inside(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        """Run a program inside the server's root."""
        return self.deployment.exec(self.instance, argv, timeout_s=timeout_s, stdin=stdin)

    @property
    def lives(self) -> bool:
        """Whether the process that was started still runs; in a virtual machine, it ends before the machine."""
        guest = self.instance.guest
        if guest is not None and guest_end(self.host, guest.status) is not None:
            return False
        return alive(self.host, self.instance.process)

    def wait_until_ready(self, clock: Clock, seconds: float = READY_S) -> None:
        """Poll until the server answers a query. Raises `RunFailed` as soon as it ends, `TimedOut` after `seconds`.

        Each query starts a client on the server's own CPUs, so queries are rare until something listens on the
        port.
        """
        deadline, asked, port_check = Deadline(clock, seconds), Deadline(clock, _SELDOM_S), self._port_check()
        while True:
            if asked.passed or _open(port_check):
                if self._answers():
                    return
                asked = Deadline(clock, _SELDOM_S)
            self.must_live(BEFORE_AN_ANSWER)
            if deadline.passed:
                raise TimedOut(f"the server did not answer a query within {seconds:g} s")
            clock.sleep(_POLL_S)

    def must_live(self, when: str) -> None:
        """Raise `RunFailed` if the server has ended. A restarted server is another process and counts as ended."""
        if not self.lives:
            reason = death_of(self.host, self.deployment, self.instance, self.oom_kills_before)
            output, log = self.instance.task.output, self._log_file
            words = last_output(self.host, output if log is None else Output(stdout=output.stderr, stderr=log))
            raise server_gone(self.node, reason, when, words)

    def effective(self) -> Mapping[str, str]:
        """Return the settings in force."""
        return self.database.effective(self.plan, self.inside)

    def shut_down(self) -> None:
        """Stop the server cleanly, so that its data can be copied. Raises `RunFailed` if it ends with an error."""
        self.database.shutdown(self.plan, self.inside)
        code = self.deployment.wait(self.instance, SHUTDOWN_S)
        if code != 0:
            raise RunFailed(f"the server ended with {code} when it was shut down")

    def stop(self, grace_s: float = 10.0) -> None:
        """End the server, cleanly or not, and remove what was made for it."""
        self.deployment.stop(self.instance, grace_s)
        if (log := self._log_file) is not None:
            raw = self.instance.task.output.stderr.removesuffix(".stderr")
            self.host.run(["cp", "--", log, f"{raw}.log"], timeout_s=_COPY_S, check=False)

    @property
    def _log_file(self) -> str | None:
        """Where the log of a server that writes it to a file lies on the host."""
        if self.plan.log_file is None:
            return None
        binds = (bind.source for bind in self.instance.task.binds if bind.target == self.plan.run_dir)
        return next((f"{source}/{LOG_FILE}" for source in binds), None)

    def _port_check(self) -> PortCheck:
        """For a virtual machine, look inside: outside, only QEMU listens, or nothing does."""
        guest = self.instance.guest
        if guest is None:
            return PortCheck(self.host, self.instance.process.pid, self.plan.port)
        return PortCheck(GuestHost.of(self.host, self.instance), guest.pid, self.plan.port)

    def _answers(self) -> bool:
        try:
            return self.database.ready(self.plan, self.inside)
        except RunFailed:
            return False  # an exec into a server that is still starting or has just ended: `lives` tells which


def _open(port_check: PortCheck) -> bool:
    """Whether the port is listened on, or may be: also `True` if that cannot be seen."""
    try:
        return port_check.listens() is not False
    except RunFailed:
        return False  # the machine may have just ended: `Server.lives` tells


Starter = Callable[[Instance], Server]
"""Starts a further server, given the first."""


@dataclass
class Sut:
    """Started servers, the first one first; `to_come` start in turn, each after the one before answers.

    `cluster`: how to ask servers whether they see each other; `None` for a single server.
    """

    servers: list[Server]
    to_come: list[Starter] = field(default_factory=list)
    cluster: Cluster | None = None

    @property
    def first(self) -> Server:
        """The server that the others join. All are alike, so it also represents them."""
        return self.servers[0]

    @property
    def instances(self) -> Mapping[str, Instance]:
        """Node name → its task's instance."""
        return {server.node.name: server.instance for server in self.servers}

    def wait_until_ready(self, clock: Clock) -> None:
        """Start the remaining servers in turn; return when each answers a query and sees all others.

        Raises `RunFailed` as soon as a server ends, and `TimedOut`.
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
        """Raise `RunFailed` if a server has ended."""
        for server in self.servers:
            server.must_live(when)

    def effective(self) -> Mapping[str, Mapping[str, str]]:
        """Node name → settings in force."""
        with self._end_told_first("while its settings were read"):
            return {server.node.name: server.effective() for server in self.servers}

    def shut_down(self) -> None:
        """Stop all servers cleanly, so that their data can be copied."""
        for server in self.servers:
            server.shut_down()

    def stop(self, grace_s: float = 10.0) -> None:
        """End all servers, cleanly or not, the last started first. A failure does not keep the others running."""
        self.to_come.clear()
        failed: Exception | None = None
        for server in reversed(self.servers):
            try:
                server.stop(grace_s)
            except Exception as error:  # noqa: BLE001 - end the next server whatever happened
                failed = failed or error
        if failed is not None:
            raise failed

    @contextmanager
    def _end_told_first(self, when: str) -> Iterator[None]:
        """If a server has ended, tell that instead of the failure that it caused inside the context."""
        try:
            yield
        except RunFailed:
            self.must_live(when)
            raise

    def _sees_all(self, cluster: Cluster, server: Server) -> bool:
        with self._end_told_first("while the cluster was formed"):
            return cluster.is_complete(server.plan, server.inside)

    def _wait_until_together(self, clock: Clock, cluster: Cluster) -> None:
        deadline = Deadline(clock, TOGETHER_S)
        for server in self.servers:
            while not self._sees_all(cluster, server):
                self.must_live("while the cluster was formed")
                if deadline.passed:
                    seen = f"does not see all {len(self.servers)} nodes up"
                    raise TimedOut(f"{server.node.name} {seen} after {TOGETHER_S:g} s")
                clock.sleep(_CLUSTER_POLL_S)
