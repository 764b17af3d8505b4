"""A client of one run: start, wait for, stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tare.deployments import Deployment, Instance, Task
from tare.errors import TimedOut
from tare.run.attempt.death import must_not_be_killed, oom_kills
from tare.run.clock import Clock, Deadline
from tare.sites import Host
from tare.sites.process import alive

_POLL_S = 0.05
_EXIT_CODE_S = 30.0


@dataclass(frozen=True)
class Client:
    """A started load generator."""

    host: Host
    deployment: Deployment
    instance: Instance
    oom_kills_before: int | None = None
    """The machine's count of OOM kills just before the start."""

    @property
    def lives(self) -> bool:
        """Whether the client still runs."""
        return alive(self.host, self.instance.process)

    def wait(self, clock: Clock, seconds: float, watch: Callable[[], None]) -> int:
        """Wait for the client to end and return its exit code.

        Raises `TimedOut` after `seconds`, and `RunFailed` when the client was killed. `watch` is called between
        polls (each reads /proc) and raises when waiting has become pointless.
        """
        deadline = Deadline(clock, seconds)
        while self.lives:
            watch()
            if deadline.passed:
                raise TimedOut(f"the client {self.instance.task.name} did not end within {seconds:g} s")
            clock.sleep(min(_POLL_S, deadline.left_s))
        code = self.deployment.wait(self.instance, _EXIT_CODE_S)
        must_not_be_killed(self.host, self.instance, code, self.oom_kills_before)
        return code

    def stop(self, grace_s: float = 10.0) -> None:
        """End the client and remove what was made for it."""
        self.deployment.stop(self.instance, grace_s)


def started(host: Host, deployment: Deployment, task: Task) -> Client:
    """Start a client of this task on the host."""
    before = oom_kills(host)
    return Client(host, deployment, deployment.start(task), before)


class Look(Protocol):
    """Records what can be observed of both sides; `last`: the client has ended."""

    def __call__(self, *, last: bool) -> None:
        """Observe both sides once."""
        ...


@dataclass(frozen=True)
class Started:
    """A running client. `lives`: raises when a server has ended."""

    client: Client
    stop: Callable[[], object]
    lives: Callable[[], None]
    look: Look

    def watch(self) -> None:
        """Check the servers and observe both sides once."""
        self.lives()
        self.look(last=False)

    def watch_client(self) -> bool:
        """Do what `watch` does, and return whether the client lives."""
        self.watch()
        return self.client.lives

    def let_run(self, clock: Clock, deadline: Deadline) -> None:
        """Watch until the deadline or until the client ends. The caller judges how it ended."""
        while not deadline.passed and self.client.lives:
            self.watch()
            clock.sleep(min(_POLL_S, deadline.left_s))
