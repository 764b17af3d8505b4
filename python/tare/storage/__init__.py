"""Storage: on what the SUT's data directory lies.

A storage makes a place for one run's data on the SUT's host, says how the task gets at it, and what the task must
then see there; whether it does is read from inside on every run (docs/reference/storage.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol

from tare.deployments import Bind, Layer, Right, Task, Volume
from tare.sites import Process

if TYPE_CHECKING:
    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class DataRequest:
    """What one run's data needs.

    `home`: a directory that may be made for it, removed with the run, with all that is mounted below it. `name`:
    plain, and unique on the host. `data_bytes`: what will be copied there.
    """

    home: str
    name: str
    data_bytes: int


@dataclass(frozen=True)
class DataMount:
    """Where the data are put, a path of the host, and how a task gets at them."""

    path: str
    fstype: str
    """As the task must see it at its data directory."""
    device: str | None = None
    """The same, of a network's file system with the server's address; `None` where the kernel makes one up for each
    mount."""
    volume: str | None = None
    """The engine's volume that `path` belongs to."""
    layer: Layer | None = None
    """`path` is only where the data wait for being put into the container's own layers; its target is not set."""
    entry: str | None = None
    """The way by which a task gets at `path` where that is another one: a mount of what a server makes of it."""
    server: Process | None = None
    """What serves it, outside of the task and of its limits; its descendants belong to it."""

    @property
    def source(self) -> str:
        """Where on the host a task finds its data."""
        return self.entry or self.path

    def add_to(self, task: Task, target: str) -> Task:
        """The task with the data at `target`."""
        if self.volume is not None:
            return replace(task, volumes=(*task.volumes, Volume(self.volume, target)))
        if self.layer is not None:
            return replace(task, layers=(*task.layers, replace(self.layer, target=target)))
        return replace(task, binds=(Bind(self.source, target), *task.binds))

    def mismatch(self, mount: str | None) -> str | None:
        """What a task should have seen in place of `mount` ("fstype major:minor"); `None` where that is right."""
        promised = self.fstype if self.device is None else f"{self.fstype} {self.device}"
        found = (mount or "").split() if self.device is None else [mount]
        return None if found[:1] == [promised] else promised


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
