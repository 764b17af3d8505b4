"""A tare has one namespace in a cluster: made with its first pod, marked, and removed as the very one it made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployments.kube.cluster import FakeClient, a_cluster, failure
from urllib3.exceptions import MaxRetryError, NewConnectionError

from tare.deployments.kube import namespaces
from tare.deployments.kube.api import Cluster
from tare.deployments.kube.namespaces import Namespaces, name_of, remove_namespace
from tare.errors import EngineSilent, RunFailed
from tare.sites.fake import FakeHost
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger")


def own(ledger: SqliteLedger, **given: Any) -> tuple[Namespaces, FakeClient]:
    cluster, client = a_cluster(**given)
    return Namespaces(cluster, FakeHost(), ledger, ledger.owner), client


def noted(ledger: SqliteLedger) -> list[str]:
    return [entry.ident for entry in ledger.entries() if entry.kind is Kind.NAMESPACE]


def test_the_first_pod_makes_it_and_the_next_finds_it(ledger: SqliteLedger) -> None:
    mine, client = own(ledger)
    name = mine.ensure()
    assert mine.ensure() == name == name_of(ledger.owner)
    assert client.asked.count(("POST", "/api/v1/namespaces")) == 1
    assert noted(ledger) == [f"{name}@of-this-cluster"]
    labels = client.objects[f"/api/v1/namespaces/{name}"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "tare"


def test_one_of_its_name_that_is_anothers_is_left_alone(ledger: SqliteLedger) -> None:
    mine, client = own(ledger)
    path = f"/api/v1/namespaces/{name_of(ledger.owner)}"
    client.objects[path] = {"metadata": {"name": "x", "uid": "theirs"}}
    with pytest.raises(RunFailed, match="exists, and it is not this tare's"):
        mine.ensure()
    assert noted(ledger) == []
    assert path in client.objects


def test_one_that_may_not_be_made_leaves_nothing_in_the_ledger(ledger: SqliteLedger) -> None:
    mine, client = own(ledger)
    client.refusals["POST", "/api/v1/namespaces"] = failure(403, "namespaces is forbidden")
    with pytest.raises(RunFailed, match="does not permit POST /api/v1/namespaces: namespaces is forbidden"):
        mine.ensure()
    assert noted(ledger) == []


def test_a_cluster_out_of_reach_is_told_with_its_address(ledger: SqliteLedger) -> None:
    mine, client = own(ledger)
    reason = NewConnectionError(None, "Connection refused")  # type: ignore[arg-type]  # no pool is needed to fail
    client.refusals["GET", "/api"] = MaxRetryError(None, "/api", reason)  # type: ignore[arg-type]  # no pool is needed to fail
    with pytest.raises(EngineSilent, match=r"the cluster at https://\S+ does not answer: .*Connection refused"):
        mine.ensure()


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, FakeClient]:
    cluster, client = a_cluster()
    monkeypatch.setattr(namespaces, "connect", lambda: cluster)
    return cluster, client


def test_it_goes_with_all_in_it(ledger: SqliteLedger, reached: tuple[Cluster, FakeClient]) -> None:
    cluster, client = reached
    name = Namespaces(cluster, FakeHost(), ledger, ledger.owner).ensure()
    client.objects[f"/api/v1/namespaces/{name}/pods/p"] = {"metadata": {"uid": "p"}}
    (ident,) = noted(ledger)
    assert remove_namespace(ident)
    assert not [path for path in client.objects if name in path]
    assert not remove_namespace(ident)


def test_another_cluster_is_never_swept_for_it(reached: tuple[Cluster, FakeClient]) -> None:
    with pytest.raises(RunFailed, match="it is in another cluster than"):
        remove_namespace("tare-x@of-another-cluster")


def test_one_without_tares_mark_is_never_removed(reached: tuple[Cluster, FakeClient]) -> None:
    _, client = reached
    client.objects["/api/v1/namespaces/tare-x"] = {"metadata": {"name": "tare-x", "uid": "u"}}
    with pytest.raises(RunFailed, match="no label of tare"):
        remove_namespace("tare-x@of-this-cluster")
    assert "/api/v1/namespaces/tare-x" in client.objects
