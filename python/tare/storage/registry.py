"""Every storage by name, and how one is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from tare.deployments import Right
from tare.plugins import Implementations, breach_of_factory
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
    """How every storage is made; what it says of itself is known before one is."""

    @property
    def deployments(self) -> frozenset[str] | None:
        """As the storage's own."""
        ...

    @property
    def options(self) -> frozenset[str]:
        """As the storage's own."""
        ...

    @property
    def needs(self) -> frozenset[Right]:
        """As the storage's own."""
        ...

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> Storage:
        """A storage on `host` that notes what it makes in `ledger`."""
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
"""Name → factory of those that come with tare."""

STORAGES: Implementations[StorageFactory] = Implementations("storage", BUILT_IN, breach_of_factory(Storage))
"""These, and those of other packages: docs/guides/plugins.md."""
