"""Deployments for calibration: `bare`, with something around the task that injects an effect of known size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from tare.deployments import Instance, Observation, Right, Task
from tare.deployments.bare.bare import Bare
from tare.sites import Completed, Host
from tare.sites.ledger import Ledger

if TYPE_CHECKING:
    from docker import DockerClient


class Injection(Protocol):
    """What stands around a bare task."""

    def prepare(self, task: Task) -> None:
        """Before the task is started; what was made of it is taken away again where that fails."""
        ...

    def begin(self, instance: Instance) -> Instance:
        """Once it runs; the instance as clients are to see it. The task is stopped where that fails."""
        ...

    def without(self, seen: Observation) -> Observation:
        """What was seen of the task, less the injection: its arm is named after that, and no study declares it."""
        ...

    def end(self, instance: Instance) -> None:
        """Once the task has ended and its control group is clear."""
        ...


@dataclass(frozen=True)
class BareWith:
    """Makes the deployment. `injection`: makes what belongs to one."""

    injection: Callable[[Host, Ledger, DockerClient | None], Injection]

    @property
    def needs(self) -> frozenset[Right]:
        """As `bare`."""
        return Bare.needs

    @property
    def isolates_network(self) -> bool:
        """As `bare`."""
        return Bare.isolates_network

    @property
    def own_root(self) -> bool:
        """As `bare`."""
        return Bare.own_root

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> AroundBare:
        """On one host."""
        return AroundBare(Bare(host, ledger, engine), self.injection(host, ledger, engine))


@dataclass(frozen=True)
class AroundBare:
    """A bare task with its injection; in all else as `bare`."""

    bare: Bare
    injection: Injection
    needs: ClassVar[frozenset[Right]] = Bare.needs
    isolates_network: ClassVar[bool] = Bare.isolates_network
    own_root: ClassVar[bool] = Bare.own_root

    def start(self, task: Task) -> Instance:
        """The task, and the injection about it."""
        self.injection.prepare(task)
        instance = self.bare.start(task)
        try:
            return self.injection.begin(instance)
        except BaseException:
            self.stop(instance)
            raise

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """As `bare`."""
        return self.bare.exec(instance, argv, timeout_s=timeout_s, user=user, stdin=stdin)

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """As `bare`."""
        return self.bare.wait(instance, timeout_s)

    def observe(self, instance: Instance) -> Observation:
        """As `bare`: of the task alone."""
        return self.injection.without(self.bare.observe(instance))

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """The task ends and its control group is cleared, with all of the injection that is in it."""
        self.bare.stop(instance, grace_s)
        self.injection.end(instance)
