"""How a virtual machine runs its task: directly in the image's root, or in a container."""

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
from tare.record.made_by import GuestContainer
from tare.sites import Host
from tare.sites.layout import default_layout
from tare.sites.ledger import Ledger


class Inside(Protocol):
    """The inside of the machines of one deployment."""

    @property
    def deployment(self) -> str:
        """Name of the deployment."""
        ...

    def kernel(self) -> Kernel:
        """Kernel to boot, with everything that is needed inside."""
        ...

    def must_take(self, task: Task) -> None:
        """Raise `RunFailed` or `EnvironmentLacks` for a task that this deployment cannot run."""
        ...

    def request(self, task: Task, disks: Sequence[Disk], names: Iterable[str]) -> Mapping[str, Any]:
        """Request that starts the task in the machine.

        `names`: names of the machine's own files for name resolution.
        """
        ...

    def container(self, guest: GuestHost, pid: int) -> GuestContainer | None:
        """The task's container in the machine. Raises `RunFailed` if what is seen contradicts the deployment."""
        ...


@dataclass(frozen=True)
class Plain:
    """`vm`: the task beside the machine's first program, with what an engine would set up around it."""

    host: Host
    ledger: Ledger
    deployment: str = "vm"

    def kernel(self) -> Kernel:
        """The kernel that all machines boot."""
        return kernel_of(self.host, self.ledger, default_layout())

    def must_take(self, task: Task) -> None:
        """Raise `RunFailed` for volumes and layers: there is no engine inside."""
        if task.volumes or task.layers:
            raise RunFailed(f"{task.name}: a virtual machine has no engine, so no volumes or layers")

    def request(self, task: Task, disks: Sequence[Disk], names: Iterable[str]) -> Mapping[str, Any]:
        """The settings that launcher.py gives a bare task."""
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

    def container(self, guest: GuestHost, pid: int) -> None:
        """There is none."""
        del guest, pid
