"""A client of one run: started, waited for, stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tare.deployments import Deployment, Instance
from tare.errors import TimedOut
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

    @property
    def lives(self) -> bool:
        """Whether it still runs."""
        return alive(self.host, self.instance.process)

    def wait(self, clock: Clock, seconds: float, watch: Callable[[], None]) -> int:
        """Its exit code; `TimedOut` when it takes longer than `seconds`.

        `watch` is called between looks, each a read of /proc, and raises when waiting has become pointless.
        """
        deadline = Deadline(clock, seconds)
        while self.lives:
            watch()
            if deadline.passed:
                raise TimedOut(f"the client {self.instance.task.name} did not end within {seconds:g} s")
            clock.sleep(min(_POLL_S, deadline.left_s))
        return self.deployment.wait(self.instance, _EXIT_CODE_S)

    def stop(self, grace_s: float = 10.0) -> None:
        """End it and remove what was made for it."""
        self.deployment.stop(self.instance, grace_s)
