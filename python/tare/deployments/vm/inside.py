"""What a virtual machine runs its task in: nothing but the image's root, or a container."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tare.deployments import Task
from tare.deployments.defaults import environment, user
from tare.deployments.rlimits import ceilings, rlimits
from tare.deployments.vm.command import Disk
from tare.deployments.vm.guest import GuestHost
from tare.deployments.vm.kernel import Kernel, kernel_of
from tare.errors import RunFailed
from tare.sites import Host
from tare.sites.layout import default_layout
from tare.sites.ledger import Ledger


class Inside(Protocol):
    """Of one deployment."""

    @property
    def deployment(self) -> str:
        """Its name."""
        ...

    def kernel(self) -> Kernel:
        """What boots, with all in it that is needed inside."""
        ...

    def must_take(self, task: Task) -> None:
        """Raise `RunFailed` or `EnvironmentLacks` for a task that cannot be placed so."""
        ...

    def request(self, task: Task, disks: Sequence[Disk], names: Iterable[str]) -> Mapping[str, Any]:
        """What the machine gets of it when the task is started. `names`: files of the machine's own."""
        ...

    def facts(self, guest: GuestHost, pid: int) -> Mapping[str, Any]:
        """What is in force around the task inside; `RunFailed` where that is not what the deployment says."""
        ...


@dataclass(frozen=True)
class Plain:
    """`vm`: the task beside the machine's first program, with what an engine would give around it."""

    host: Host
    ledger: Ledger
    deployment: str = "vm"

    def kernel(self) -> Kernel:
        """The same for all."""
        return kernel_of(self.host, self.ledger, default_layout())

    def must_take(self, task: Task) -> None:
        """There is no engine inside."""
        if task.volumes or task.layers:
            raise RunFailed(f"{task.name}: a virtual machine has no engine, so no volumes or layers")

    def request(self, task: Task, disks: Sequence[Disk], names: Iterable[str]) -> Mapping[str, Any]:
        """What launcher.py gives a bare task."""
        del disks, names
        limits = rlimits(task.limits, ceilings(self.host))
        return {
            "program": {
                "argv": list(task.argv),
                "env": dict(environment(task)),
                "user": user(task),
                "workdir": task.workdir,
                "rlimits": {name: (limit.soft, limit.hard) for name, limit in limits.items()},
            }
        }

    def facts(self, guest: GuestHost, pid: int) -> Mapping[str, Any]:
        """Nothing beyond what any task has."""
        del guest, pid
        return {}
