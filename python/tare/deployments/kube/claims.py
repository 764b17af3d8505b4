"""PersistentVolumeClaims of a storage class in tare's namespace: made once, used by one run at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tare.deployments.kube.api import Cluster, Tree
from tare.deployments.kube.manifest import MANAGED
from tare.errors import EnvironmentLacks, RunFailed

_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_DIGITS = 12
_MOST = 64
"""Far more than the number of runs at a time."""
_BOUND = "Bound"


@dataclass(frozen=True)
class Claims:
    """The claims in one namespace.

    They stay as long as it does: a volume that is kept (`Retain`) can be bound only once.
    """

    cluster: Cluster
    namespace: str

    def take(self, storage_class: str, size_bytes: int) -> str:
        """Return the name of a claim that no pod holds; the caller must give its pod the same name."""
        must_have_classes(self.cluster, [storage_class])
        key = hashlib.sha256(f"{storage_class} {size_bytes}".encode()).hexdigest()[:_DIGITS]
        for number in range(_MOST):
            name = f"tare-{key}-claim-{number}"
            if self.cluster.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}") is not None:
                continue
            if self._get(name) is None:
                self.cluster.post(self._path, claim_of(name, self.namespace, storage_class, size_bytes))
            return name
        raise RunFailed(f"{_MOST} claims of the storage class {storage_class} are in use at once")

    def must_be_bound(self, name: str, why: RunFailed) -> None:
        """Raise the reason why a pod with this claim did not start.

        If the claim has no volume, raise that instead.
        """
        tree = self._get(name) or {}
        if (tree.get("status") or {}).get("phase") == _BOUND:
            raise why
        storage_class = (tree.get("spec") or {}).get("storageClassName")
        raise RunFailed(
            f"the claim of the storage class `{storage_class}` is pending: no volume is bound to it: {why.what}",
            hint="kubectl describe persistentvolumeclaims --all-namespaces shows why; a class without a "
            "provisioner needs a free volume of this size for this node",
        ) from why

    def storage_class_of(self, name: str) -> str | None:
        """Storage class of a claim, as the cluster reports it."""
        return ((self._get(name) or {}).get("spec") or {}).get("storageClassName")

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"

    def _get(self, name: str) -> Tree | None:
        return self.cluster.get(f"{self._path}/{name}")


def claim_of(name: str, namespace: str, storage_class: str, size_bytes: int) -> Tree:
    """Request for a claim to the API server."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(MANAGED)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": str(size_bytes)}},
        },
    }


def must_have_classes(cluster: Cluster, wanted: Iterable[str]) -> None:
    """Raise `EnvironmentLacks` for storage classes that the cluster does not have.

    The message lists those that it has.
    """
    names = sorted(set(wanted))
    absent = [f"`{name}`" for name in names if cluster.get(f"{_CLASSES}/{name}") is None]
    if absent:
        there = ", ".join(_names(cluster)) or "none"
        raise EnvironmentLacks(
            f"the cluster at {cluster.server} has no storage class {' and no '.join(absent)} (it has: {there})",
            hint="kubectl get storageclasses; name one of them as `storage_class`",
        )


def _names(cluster: Cluster) -> Iterator[str]:
    listed = cluster.get(_CLASSES) or {}
    yield from sorted(each["metadata"]["name"] for each in listed.get("items") or [])
