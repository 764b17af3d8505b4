"""Storage: what the SUT's data directory lies on.

A storage makes a place for one run's data on the SUT's host, mounts it into the task, and says what the task must
then see there. Every run checks this from inside (docs/reference/storage.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol

from tare.deployments import Bind, Claim, Layer, Task, Volume
from tare.requirements import Requirement
from tare.sites import Process

if TYPE_CHECKING:
    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class DataRequest:
    """Requirements of one run's data.

    `home`: a directory to make for the data; it is removed with the run, with all mounts below it. `name`: a plain
    name, unique on the host. `data_bytes`: size of the data that will be copied there.
    """

    home: str
    name: str
    data_bytes: int


@dataclass(frozen=True)
class DataMount:
    """Path on the host to which the data is copied, and how a task reaches it."""

    path: str
    fstype: str
    """File system type that the task must see at its data directory."""
    device: str | None = None
    """Device that the task must see there, with the server's address for a network file system; `None` if the
    kernel makes up a device for each mount."""
    volume: str | None = None
    """The engine's volume that `path` belongs to."""
    claim: str | None = None
    """The cluster's claim on the volume that contains `path`."""
    layer: Layer | None = None
    """Container layer that the data goes into; `path` only holds the data until then. Its target is not set."""
    entry: str | None = None
    """The task's own path to the data if it is not `path`: the mount of a server's export."""
    server: Process | None = None
    """The server process, which runs outside the task and its limits, with its descendants."""

    @property
    def source(self) -> str:
        """Directory of the host that a task uses as its data directory."""
        return self.entry or self.path

    def add_to(self, task: Task, target: str) -> Task:
        """Return the task with the data mounted at `target`."""
        if self.volume is not None:
            return replace(task, volumes=(*task.volumes, Volume(self.volume, target)))
        if self.claim is not None:
            below = self.path.rpartition("/")[2]
            return replace(task, claims=(*task.claims, Claim(self.claim, target, below)))
        if self.layer is not None:
            return replace(task, layers=(*task.layers, replace(self.layer, target=target)))
        return replace(task, binds=(Bind(self.source, target), *task.binds))

    def mismatch(self, mount: str | None) -> str | None:
        """Return the expected mount if `mount` ("fstype major:minor", as the task sees it) is wrong.

        Else `None`.
        """
        promised = self.fstype if self.device is None else f"{self.fstype} {self.device}"
        actual = (mount or "").split() if self.device is None else [mount]
        return None if actual[:1] == [promised] else promised


class Storage(Protocol):
    """Makes places of one kind. All methods may be called again after a failure."""

    deployments: ClassVar[frozenset[str] | None]
    """Deployments that can use this storage; `None`: all."""
    options: ClassVar[frozenset[str]]
    """Keys of `StorageSpec` that this storage uses."""
    needs: ClassVar[tuple[Requirement, ...]]
    """What the SUT's host must have."""

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Make an empty place. Raises `EnvironmentLacks` if this host cannot provide it."""
        ...

    def clear(self, request: DataRequest) -> None:
        """Remove what `prepare` made outside of `request.home`, and what it mounted there."""
        ...
