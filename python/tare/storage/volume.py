"""`volume`: a volume of the engine's local driver, one for each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from docker.errors import DockerException, NotFound
from requests.exceptions import RequestException

from tare.deployments.directories import remove_tree
from tare.deployments.mounts import mount_under, must_share_disk
from tare.errors import EnvironmentLacks, RunFailed
from tare.requirements import Requirement
from tare.requirements.engines import ENGINE
from tare.requirements.rights import ROOT
from tare.sites import Host
from tare.sites.engine import labels
from tare.sites.ledger import Kind, Ledger
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import CALL_S

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.volumes import VolumeCollection

    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class VolumeStorage:
    """Filled through its directory on the host, which only the local driver makes known."""

    deployments: ClassVar[frozenset[str] | None] = frozenset({"container"})
    options: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[tuple[Requirement, ...]] = (ENGINE, ROOT)

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:  # noqa: ARG002 - there is nothing to choose
        """Have the engine make the volume; it is noted in the ledger first."""
        self.clear(request)
        self.ledger.note(Kind.VOLUME, request.name, host=self.host.name)
        try:
            volume = self._volumes().create(
                request.name, driver="local", labels=labels(request.name, self.ledger.owner_on(self.host.name))
            )
        except (DockerException, RequestException) as error:
            raise EnvironmentLacks(f"the engine cannot make a volume: {error}") from error
        path = str(volume.attrs["Mountpoint"])
        if self.host.run(["test", "-d", path], timeout_s=CALL_S, check=False).code != 0:
            raise EnvironmentLacks(
                f"the engine's volume {path} is not on {self.host.name}",
                hint="the engine must run on the SUT's host",
            )
        must_share_disk(self.host, path, request.home.rpartition("/")[0])
        below = mount_under(self.host, path)
        return DataMount(path, below.fstype, below.device, volume=request.name)

    def clear(self, request: DataRequest) -> None:
        """Remove the volume; it may be gone already."""
        try:
            self._volumes().get(request.name).remove(force=True)
        except NotFound:
            pass
        except (DockerException, RequestException) as error:
            raise RunFailed(f"the volume {request.name} cannot be removed: {error}") from error
        self.ledger.forget(Kind.VOLUME, request.name, host=self.host.name)
        remove_tree(self.host, request.home)

    def _volumes(self) -> VolumeCollection:
        if self.engine is None:
            raise EnvironmentLacks("volumes need a container engine", hint="start one, see `tare doctor`")
        return self.engine.volumes
