"""`claim`: a volume of a cluster's storage class, through a PersistentVolumeClaim, for a server in a pod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import POD, Claim, Instance
from tare.deployments.directories import remove_tree
from tare.deployments.kube.api import Cluster, connect
from tare.deployments.kube.claims import Claims
from tare.deployments.kube.cluster_pod import ClusterPod
from tare.deployments.kube.namespaces import Namespaces
from tare.deployments.kube.sleeper import sleeper
from tare.deployments.mounts import place_on_host
from tare.errors import EnvironmentLacks, RunFailed
from tare.requirements import Requirement
from tare.requirements.rights import ROOT
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.sites.local import own_process
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import CALL_S, data_below, size_for
from tare.study.values import size_bytes

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec

_VOLUME = "/volume"
"""Mount point of the whole volume in the pod that holds the claim."""
_REMOVAL_S = 600.0


@dataclass(frozen=True)
class _Held:
    pods: ClusterPod
    instance: Instance
    data: str


@dataclass(frozen=True)
class ClaimStorage:
    """A sleeping pod holds the volume on the node while data is put there, and until the run is over.

    So the scheduler and the class's driver work as for any pod, and tare looks up where the volume is mounted: a
    driver may create it only for a pod that uses it (`WaitForFirstConsumer`).
    """

    deployments: ClassVar[frozenset[str] | None] = frozenset({POD})
    options: ClassVar[frozenset[str]] = frozenset({"storage_class", "size"})
    needs: ClassVar[tuple[Requirement, ...]] = (ROOT,)

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None
    reach: Callable[[], Cluster] = connect
    _held: dict[str, _Held] = field(default_factory=dict)
    """Name of a request → the pod and volume held for it."""

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Claim a volume, wait until it is bound on this node, and remove any data."""
        self.clear(request)
        size = size_for(request.data_bytes) if spec.size is None else size_bytes(spec.size)
        cluster = self.reach()
        claims = Claims(cluster, Namespaces(cluster, self.host, self.ledger, own_process()).ensure())
        name = claims.take(spec.storage_class or "", size)
        pods = ClusterPod(self.host, self.ledger, None, self.reach)
        task = replace(sleeper(self.host, request.home, name), claims=(Claim(name, _VOLUME),))
        try:
            instance = pods.start(task)
        except RunFailed as error:
            claims.must_be_bound(name, error)
            raise
        self._held[request.name] = _Held(pods, instance, "")
        place = place_on_host(self.host, instance.process.pid, _VOLUME)
        if place is None:
            raise EnvironmentLacks(
                f"{self.host.name} cannot see where a volume of the storage class `{spec.storage_class}` is",
                hint="its driver must mount it in the node's own mount namespace, as kubelet shows it to pods",
            )
        data = data_below(place.path)
        self._held[request.name] = _Held(pods, instance, data)
        self._empty(data)
        return DataMount(data, place.mount.fstype, place.mount.device, claim=name)

    def clear(self, request: DataRequest) -> None:
        """Remove the data, then the pod. The next run takes the claim again; it is removed with the namespace."""
        held = self._held.get(request.name)
        if held is not None:
            if held.data:
                self._empty(held.data)
            held.pods.stop(held.instance, grace_s=0)
            del self._held[request.name]
        remove_tree(self.host, request.home)

    def _empty(self, data: str) -> None:
        self.host.run(["rm", "-rf", "--one-file-system", "--", data], timeout_s=_REMOVAL_S)
        self.host.run(["test", "!", "-e", data], timeout_s=CALL_S)
