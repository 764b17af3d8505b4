"""What the deployment `pod` requires of a host and of the user's cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from tare.deployments.containerd.ctr import ctr
from tare.deployments.kube.api import Cluster, connect
from tare.deployments.kube.claims import must_have_classes
from tare.deployments.kube.node import Node, node_of
from tare.errors import EnvironmentLacks, RunFailed, TareError
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host

_RIGHTS = (
    ("create", "namespaces"), ("delete", "namespaces"), ("get", "namespaces"), ("list", "nodes"),
    ("create", "pods"), ("get", "pods"), ("delete", "pods"),
    ("create", "services"), ("get", "services"), ("delete", "services"), ("get", "serviceaccounts"),
)  # fmt: skip
"""Rights in all namespaces, as tare's own namespace does not exist yet."""
_RIGHTS_OF_CLAIMS = (
    ("create", "persistentvolumeclaims"), ("get", "persistentvolumeclaims"),
    ("get", "storageclasses.storage.k8s.io"),
)  # fmt: skip
_PROGRAMS = ("ctr", "mkfifo", "prlimit", "setpriv", "tail", "tee")
_QUICK_S = 10.0


def _lacks(there: HostPlan) -> Iterator[Lack]:
    """Ask also for the storage classes of the volumes to claim."""
    named = {each.sut.storage.storage_class for each in there.served}
    try:
        usable_node(there.host, classes=frozenset(name for name in named if name is not None))
    except TareError as error:
        yield Lack(str(error))


def usable_node(host: Host, reach: Callable[[], Cluster] = connect, classes: Collection[str] = ()) -> Node:
    """The node that `host` is, ready for pods of this user.

    Raises `EnvironmentLacks` or `RunFailed` if it is not usable.
    """
    cluster = reach()
    wanted = (*_RIGHTS, *(_RIGHTS_OF_CLAIMS if classes else ()))
    if missing := tuple(_missing_rights(cluster, wanted)):
        raise EnvironmentLacks(
            f"the user at {cluster.server} may not {', '.join(missing)}",
            hint="ask its administrator for these rights, see docs/reference/kubernetes.md",
        )
    must_have_classes(cluster, classes)
    node = node_of(cluster, host)
    if absent := [each for each in _PROGRAMS if not _is_there(host, each)]:
        hint = "install containerd and util-linux on the node"
        raise EnvironmentLacks(f"{', '.join(absent)} is missing on the node {host.name}", hint=hint)
    ctr(host, node.socket, "version")
    return node


def _missing_rights(cluster: Cluster, wanted: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Ask the API to review each right, which every user may do; yield those that are missing."""
    for verb, resource in wanted:
        name, _, group = resource.partition(".")
        asked = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": verb, "resource": name, "group": group}},
        }
        answer = cluster.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked)
        if not (answer.get("status") or {}).get("allowed"):
            yield f"{verb} {resource}"


def _is_there(host: Host, program: str) -> bool:
    try:
        return host.run([program, "--help"], timeout_s=_QUICK_S, check=False).code in {0, 1}
    except RunFailed:
        return False


CLUSTER = Requirement(
    "cluster",
    needed_by="arms with `deployment: pod`",
    tried_how="the cluster's API: access reviews, storage classes, this node; `ctr version` on the node",
    hint="docs/reference/kubernetes.md names the rights and programs",
    ask=_lacks,
)
