"""One namespace for each running tare: everything that it makes in a cluster lies in it and is removed with it."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from http import HTTPStatus

from tare.deployments.kube.api import ApiRefused, Cluster, NoCluster, connect, connect_all
from tare.deployments.kube.manifest import MANAGED
from tare.errors import EngineSilent, RunFailed, TareError, TimedOut
from tare.sites import Host, Process
from tare.sites.ledger import Kind, Ledger
from tare.sites.process import to_ident

OWNER = "org.tare-bench.owner"
_GONE_S, _ACCOUNT_S, _POLL_S = 180.0, 60.0, 0.2
_DIGITS = 12
_EXISTS = 409
_OF_CLUSTER = "/api/v1/namespaces/kube-system"
"""Every cluster has this namespace, and its uid is commonly used to identify the cluster."""


class ElsewhereOrGone(RunFailed):
    """What answers is not the cluster of a namespace."""


@dataclass(frozen=True)
class Namespaces:
    """The namespace of one running tare in one cluster."""

    cluster: Cluster
    host: Host
    ledger: Ledger
    owner: Process

    def ensure(self) -> str:
        """Return the name of this tare's namespace, made for its first pod.

        `RunFailed` if another owner has this name.
        """
        name, owner = name_of(self.owner), to_ident(self.owner)
        path = f"/api/v1/namespaces/{name}"
        tree = self.cluster.get(path)
        if tree is None:
            self.ledger.note(Kind.NAMESPACE, self._ident(name), host=self.host.name)
            meta = {
                "name": name,
                # Pods of this namespace mount directories of the node (Pod Security Standards).
                "labels": {**MANAGED, "pod-security.kubernetes.io/enforce": "privileged"},
                "annotations": {OWNER: owner},
            }
            try:
                tree = self.cluster.post(
                    "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
                )
            except ApiRefused as error:
                self.ledger.forget(Kind.NAMESPACE, self._ident(name), host=self.host.name)
                if error.status != _EXISTS:
                    raise
                tree = self.cluster.must_get(path)
        if (tree["metadata"].get("annotations") or {}).get(OWNER) != owner:
            raise RunFailed(
                f"the namespace {name} exists, and it is not this tare's",
                hint=f"kubectl get namespace {name} --output yaml shows whose it is; delete it if nobody's",
            )
        self._wait_for_account(name)
        return name

    def _ident(self, name: str) -> str:
        return f"{name}@{_uid_of(self.cluster)}"

    def _wait_for_account(self, name: str) -> None:
        """Wait for the default service account: no pod is admitted before its controller has made it."""
        deadline = time.monotonic() + _ACCOUNT_S
        while self.cluster.get(f"/api/v1/namespaces/{name}/serviceaccounts/default") is None:
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"the namespace {name} got no account `default` within {_ACCOUNT_S:g} s",
                    hint="is the cluster's controller manager running?",
                )
            time.sleep(_POLL_S)


def name_of(owner: Process) -> str:
    """Name of the namespace of a tare process."""
    return f"tare-{hashlib.sha256(to_ident(owner).encode()).hexdigest()[:_DIGITS]}"


def remove_namespace(ident: str) -> bool:
    """Remove a namespace that the ledger lists as `NAME@CLUSTER`, with everything in it; return whether it existed.

    Raises `ElsewhereOrGone` for another cluster, `RunFailed` for a namespace without tare's mark, and if it is not
    removed in time.
    """
    name, _, of = ident.partition("@")
    cluster = connect()
    if _uid_of(cluster) != of:
        raise ElsewhereOrGone(f"it is in another cluster than {cluster.server}")
    path = f"/api/v1/namespaces/{name}"
    tree = cluster.get(path)
    if tree is None:
        return False
    if OWNER not in (tree["metadata"].get("annotations") or {}):
        raise RunFailed(
            "it has no label of tare, so it belongs to someone else", hint=f"kubectl delete namespace {name}"
        )
    cluster.delete(path, uid=tree["metadata"]["uid"])
    deadline = time.monotonic() + _GONE_S
    while (left := cluster.get(path)) is not None and left["metadata"]["uid"] == tree["metadata"]["uid"]:
        if time.monotonic() > deadline:
            raise TimedOut(f"it is not removed within {_GONE_S:g} s", hint=f"kubectl get all --namespace {name}")
        time.sleep(_POLL_S)
    return True


def why_out_of_reach(ident: str) -> str:
    """Why no cluster of the user's kubeconfig is that of a namespace, as the ledger lists it.

    Whether that cluster exists cannot be known from here. Raises `RunFailed` where it answers, or where one answers
    that does not permit asking which it is, and `EnvironmentLacks` where this Python has no client to ask by.
    """
    try:
        clusters = connect_all()
    except NoCluster as error:
        return error.what
    return "; ".join(dict.fromkeys(_why_not(each, ident) for each in clusters)) or "the kubeconfig has no contexts"


def _why_not(cluster: Cluster | NoCluster, ident: str) -> str:
    """Why a cluster is not that of a namespace. Raises `RunFailed` where it is, or may be."""
    if isinstance(cluster, NoCluster):
        return cluster.what
    name, _, of = ident.partition("@")
    try:
        uid = _uid_of(cluster)
    except TareError as error:
        if may_be_gone(error):
            return error.what
        raise RunFailed(
            f"the cluster at {cluster.server} does not say whether it has the namespace {name}: {error.what}",
            hint="use a context with this right, or set KUBECONFIG to a file without this cluster",
        ) from error
    if uid == of:
        raise RunFailed(
            f"the cluster that has the namespace {name} answers at {cluster.server}",
            hint="`tare clean` with its context as the current one removes it: kubectl config use-context",
        )
    return f"it is in another cluster than {cluster.server}"


def may_be_gone(error: Exception) -> bool:
    """Whether an error leaves open if a namespace's cluster exists: nobody, or something else, answered for it."""
    if isinstance(error, ApiRefused):  # what forbids the question knows the user, and may be that cluster
        return error.status != HTTPStatus.FORBIDDEN
    return isinstance(error, EngineSilent | NoCluster | ElsewhereOrGone)


def _uid_of(cluster: Cluster) -> str:
    """Which cluster it is. Raises `ElsewhereOrGone` if what answers is none."""
    tree = cluster.must_get(_OF_CLUSTER)
    metadata = tree.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    if not isinstance(uid, str):
        raise ElsewhereOrGone(f"the server at {cluster.server} is not the API of a Kubernetes cluster")
    return uid
