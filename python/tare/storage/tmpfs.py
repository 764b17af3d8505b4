"""`tmpfs`: the machine's memory. Its pages count against the memory limit of the process that first wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments.mounts import mount_under
from tare.requirements import Requirement
from tare.requirements.rights import ROOT
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
    """A tmpfs for each run, made by the host and the same for every deployment."""

    deployments: ClassVar[frozenset[str] | None] = None
    options: ClassVar[frozenset[str]] = frozenset({"size"})
    needs: ClassVar[tuple[Requirement, ...]] = (ROOT,)

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Mount it with a size; the default would be half of the memory."""
        size = size_for(request.data_bytes) if spec.size is None else size_bytes(spec.size)
        unmount(self.host, request.home)
        mount(self.host, request.home, ["-t", "tmpfs", "-o", f"size={size},mode=0755", "tare"])
        below = mount_under(self.host, request.home)
        return DataMount(data_below(request.home), below.fstype, below.device)

    def clear(self, request: DataRequest) -> None:
        """Unmount it, which frees the memory."""
        unmount(self.host, request.home)
