"""What a cluster does not give fails the one run, with a reason, and leaves nothing in it."""

from __future__ import annotations

import time

import pytest
from tests.integration.kube.test_cluster_pod import MakeTask

from tare.deployments import Deployment
from tare.deployments.kube.api import Cluster
from tare.deployments.kube.namespaces import name_of
from tare.deployments.kube.node_image import NodeImages
from tare.errors import RunFailed
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]


def test_an_image_that_the_node_has_not_is_named(
    pods: Deployment, make_task: MakeTask, cluster: Cluster, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the node's own clearing up takes it between its import and the pod."""
    monkeypatch.setattr(NodeImages, "_bring", lambda *_: None)
    task = make_task("sleep", "1000")
    with pytest.raises(RunFailed, match=r"cannot start, ErrImageNeverPull: .*is not present"):
        pods.start(task)
    assert cluster.get(f"/api/v1/namespaces/{name_of(ledger.owner)}/pods/{task.name}") is None


def test_a_namespace_of_its_name_that_is_anothers_is_left_as_it_is(
    pods: Deployment, make_task: MakeTask, cluster: Cluster, ledger: SqliteLedger
) -> None:
    name = name_of(ledger.owner)
    path = f"/api/v1/namespaces/{name}"
    theirs = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    uid = cluster.post("/api/v1/namespaces", theirs)["metadata"]["uid"]
    try:
        with pytest.raises(RunFailed, match=f"the namespace {name} exists, and it is not this tare's"):
            pods.start(make_task("sleep", "1000"))
        kept = cluster.must_get(path)
        assert (kept["metadata"]["uid"], kept["status"]["phase"]) == (uid, "Active")
    finally:
        cluster.delete(path, uid=uid)
        deadline = time.monotonic() + 120
        while cluster.get(path) is not None and time.monotonic() < deadline:
            time.sleep(0.5)
