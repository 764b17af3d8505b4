"""`layer`: the container's own file system, as if nothing were mounted at a database's data directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import Layer
from tare.deployments.directories import remove_tree
from tare.requirements import Requirement
from tare.requirements.engines import ENGINE
from tare.requirements.rights import ROOT
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import CALL_S, data_below

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec

OVERLAY = "overlay"


@dataclass(frozen=True)
class LayerStorage:
    """Keeps data in a directory of the host; the deployment copies it into a layer before the container starts."""

    deployments: ClassVar[frozenset[str] | None] = frozenset({"container", "vm-container"})
    options: ClassVar[frozenset[str]] = frozenset({"copy_up"})
    needs: ClassVar[tuple[Requirement, ...]] = (ENGINE, ROOT)

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Make the directory, and describe the layer that its data goes into."""
        self.host.run(["install", "-d", "-m", "0755", "--", request.home], timeout_s=CALL_S)
        path = data_below(request.home)
        waiting = Layer(path, target="", copy_up=bool(spec.copy_up), warmed=spec.cache == "warmed")
        return DataMount(path, OVERLAY, layer=waiting)

    def clear(self, request: DataRequest) -> None:
        """Remove the directory; data in the container is removed with the container."""
        remove_tree(self.host, request.home)
