"""`bind`: a directory of the host, on the file system of TARE_HOME."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments.directories import remove_tree
from tare.deployments.mounts import mount_under
from tare.requirements import Requirement
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import CALL_S, data_below

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class BindStorage:
    """The storage that a bare server has anyway; a container gets the same directory mounted."""

    deployments: ClassVar[frozenset[str] | None] = None
    options: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[tuple[Requirement, ...]] = ()

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:  # noqa: ARG002 - there is nothing to choose
        """Make the directory."""
        self.host.run(["install", "-d", "-m", "0755", "--", request.home], timeout_s=CALL_S)
        below = mount_under(self.host, request.home)
        return DataMount(data_below(request.home), below.fstype, below.device)

    def clear(self, request: DataRequest) -> None:
        """Remove the directory."""
        remove_tree(self.host, request.home)
