"""`tmpfs`: the machine's memory. Its pages count against the memory limit of whoever wrote them first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import Right
from tare.deployments.mounts import lying_under
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import data_below, mount, size_for, unmount
from tare.study.values import size_bytes

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class TmpfsStorage:
    """A tmpfs of the run's own, made by the host and the same for every deployment."""

    deployments: ClassVar[frozenset[str] | None] = None
    options: ClassVar[frozenset[str]] = frozenset({"size"})
    needs: ClassVar[frozenset[Right]] = frozenset({Right.ROOT})

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Mounted with a size; without one it would be half of the memory."""
        size = size_for(request.data_bytes) if spec.size is None else size_bytes(spec.size)
        unmount(self.host, request.home)
        mount(self.host, request.home, ["-t", "tmpfs", "-o", f"size={size},mode=0755", "tare"])
        below = lying_under(self.host, request.home)
        return DataMount(data_below(request.home), below.fstype, below.device)

    def clear(self, request: DataRequest) -> None:
        """Unmounting frees the memory."""
        unmount(self.host, request.home)
