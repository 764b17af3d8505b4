"""Every storage by name, and the factories that make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from tare.plugins import Implementations, breach_of_factory
from tare.requirements import Requirement
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.storage import Storage
from tare.storage.bind import BindStorage
from tare.storage.block import BlockStorage
from tare.storage.claim import ClaimStorage
from tare.storage.layer import LayerStorage
from tare.storage.nfs.nfs import NfsStorage
from tare.storage.tmpfs import TmpfsStorage
from tare.storage.volume import VolumeStorage

if TYPE_CHECKING:
    from docker import DockerClient


class StorageFactory(Protocol):
    """Makes a storage; its attributes are known before one is made."""

    @property
    def deployments(self) -> frozenset[str] | None:
        """`Storage.deployments`, known before a storage is made."""
        ...

    @property
    def options(self) -> frozenset[str]:
        """`Storage.options`, known before a storage is made."""
        ...

    @property
    def needs(self) -> tuple[Requirement, ...]:
        """`Storage.needs`, known before a storage is made."""
        ...

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> Storage:
        """Make a storage on `host` that notes everything it makes in `ledger`."""
        ...


BUILT_IN: Mapping[str, StorageFactory] = {
    "bind": BindStorage,
    "layer": LayerStorage,
    "volume": VolumeStorage,
    "tmpfs": TmpfsStorage,
    "block": BlockStorage,
    "nfs": NfsStorage,
    "claim": ClaimStorage,
}
"""Name → factory, of the storages that come with tare."""

STORAGES: Implementations[StorageFactory] = Implementations("storage", BUILT_IN, breach_of_factory(Storage))
"""Name → factory, including storages of other packages: docs/guides/plugins.md."""
