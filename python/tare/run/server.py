"""One server: started, asked until it answers, read back, watched, stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.databases import Database, ServerPlan
from tare.deployments import Deployment, Instance
from tare.deployments.guest import GuestHost
from tare.deployments.guest_end import end_told
from tare.errors import RunFailed, TimedOut
from tare.run.clock import Clock, Deadline
from tare.run.death import death_of, last_words
from tare.run.nodes import Node
from tare.run.ports import Lookout
from tare.sites import Completed, Host
from tare.sites.process import alive

READY_S = 300.0
"""How long a server may take from its start to its first answer, crash recovery of a clean copy included.

A JVM that is ready in 8 s on a machine left alone takes minutes where several start on two busy CPUs."""
SHUTDOWN_S = 300.0
BEFORE_AN_ANSWER = "before it answered its first query"
_POLL_S, _SELDOM_S = 0.05, 20.0


def gone(node: Node, told: str, when: str, words: str) -> RunFailed:
    """What is said of a server that has ended."""
    which = f", node {node.name}" if node.part else ""
    return RunFailed(
        f"{told} {when}{which}; its last words: {words}",
        hint=f"{node.name}.stdout and {node.name}.stderr among the raw files have all of them",
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
        if guest is not None and end_told(self.host, guest.status) is not None:
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
            told = death_of(self.host, self.deployment, self.instance, self.oom_kills_before)
            raise gone(self.node, told, when, last_words(self.host, self.instance.task.output))

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
            return False  # an exec into a server that is still coming up, or has just gone: `lives` tells which


def _open(lookout: Lookout) -> bool:
    """Also where it cannot be seen."""
    try:
        return lookout.listens() is not False
    except RunFailed:
        return False  # the machine may have just ended: `Server.lives` tells
