"""`bind`: a directory of the host, on the file system that TARE_HOME lies on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import Right
from tare.deployments.directories import remove_tree
from tare.deployments.mounts import lying_under
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import CALL_S, data_below

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class BindStorage:
    """What a bare server has by nature; a container gets the same directory mounted."""

    deployments: ClassVar[frozenset[str] | None] = None
    options: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[frozenset[Right]] = frozenset()

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:  # noqa: ARG002 - there is nothing to choose
        """A directory."""
        self.host.run(["install", "-d", "-m", "0755", "--", request.home], timeout_s=CALL_S)
        below = lying_under(self.host, request.home)
        return DataMount(data_below(request.home), below.fstype, below.device)

    def clear(self, request: DataRequest) -> None:
        """Remove it."""
        remove_tree(self.host, request.home)
