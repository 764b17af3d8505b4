"""Storage: on what the SUT's data directory lies.

A storage makes a place for one run's data on the SUT's host, says how the task gets at it, and what the task must
then see there; whether it does is read from inside on every run (docs/reference/storage.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol

from tare.deployments import Bind, Claim, Layer, Right, Task, Volume
from tare.sites import Process

if TYPE_CHECKING:
    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class DataRequest:
    """What one run's data needs.

    `home`: a directory to make for it, which goes with the run, with all mounts below it. `name`: plain, and
    unique on the host. `data_bytes`: how much will be copied there.
    """

    home: str
    name: str
    data_bytes: int


@dataclass(frozen=True)
class DataMount:
    """The host's path to which the data are copied, and how a task reaches them."""

    path: str
    fstype: str
    """As the task must see it at its data directory."""
    device: str | None = None
    """The same, of a network's file system with the server's address; `None` where the kernel makes one up for each
    mount."""
    volume: str | None = None
    """The engine's volume that `path` belongs to."""
    claim: str | None = None
    """The cluster's claim on the volume in which `path` is a directory."""
    layer: Layer | None = None
    """`path` only keeps the data until they are put into the container's own layers. Its target is not set."""
    entry: str | None = None
    """The task's own way to the data where it is not `path`: the mount of a server's export."""
    server: Process | None = None
    """The server process, outside of the task and its limits, with its descendants."""

    @property
    def source(self) -> str:
        """Where on the host a task finds its data."""
        return self.entry or self.path

    def add_to(self, task: Task, target: str) -> Task:
        """The task with the data at `target`."""
        if self.volume is not None:
            return replace(task, volumes=(*task.volumes, Volume(self.volume, target)))
        if self.claim is not None:
            below = self.path.rpartition("/")[2]
            return replace(task, claims=(*task.claims, Claim(self.claim, target, below)))
        if self.layer is not None:
            return replace(task, layers=(*task.layers, replace(self.layer, target=target)))
        return replace(task, binds=(Bind(self.source, target), *task.binds))

    def mismatch(self, mount: str | None) -> str | None:
        """The expected mount where `mount` ("fstype major:minor", as the task sees it) is wrong; else `None`."""
        promised = self.fstype if self.device is None else f"{self.fstype} {self.device}"
        actual = (mount or "").split() if self.device is None else [mount]
        return None if actual[:1] == [promised] else promised


class Storage(Protocol):
    """Makes places of one kind. All methods may be called again after a failure."""

    deployments: ClassVar[frozenset[str] | None]
    """Those that can use it; `None`: all."""
    options: ClassVar[frozenset[str]]
    """Keys of `StorageSpec` that mean something to it."""
    needs: ClassVar[frozenset[Right]]

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Make the place, empty. Raises `EnvironmentLacks` where this host has no means for it."""
        ...

    def clear(self, request: DataRequest) -> None:
        """Remove what `prepare` made outside of `request.home`, and what it mounted there."""
        ...
