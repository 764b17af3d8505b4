"""What a user's cluster lacks for pods, and for volumes of a storage class, is found before anything is started."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.deployments.kube.cluster import Answer, FakeClient, a_cluster

from tare.deployments.kube.requirement import usable_node
from tare.errors import EnvironmentLacks
from tare.sites.fake import FakeHost


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Verb, resource and group of each right that is asked about; claims are not permitted."""
    seen: list[tuple[str, str, str]] = []
    post = FakeClient._post

    def review(self: FakeClient, path: str, body: Any) -> Answer:
        if "selfsubjectaccessreviews" not in path:
            return post(self, path, body)
        wanted = body["spec"]["resourceAttributes"]
        seen.append((wanted["verb"], wanted["resource"], wanted["group"]))
        allowed = wanted["resource"] != "persistentvolumeclaims"
        return Answer(201, json.dumps({**body, "status": {"allowed": allowed}}).encode())

    monkeypatch.setattr(FakeClient, "_post", review)
    return seen


def test_without_claims_nothing_is_asked_about_them(asked: list[tuple[str, str, str]]) -> None:
    cluster, _ = a_cluster()
    assert usable_node(FakeHost(), lambda: cluster).name == "node-1"
    assert ("create", "pods", "") in asked
    assert not [resource for _, resource, _ in asked if "persistent" in resource or "storage" in resource]


def test_claims_take_rights_of_their_own(asked: list[tuple[str, str, str]]) -> None:
    cluster, _ = a_cluster()
    with pytest.raises(EnvironmentLacks, match="may not create persistentvolumeclaims, get persist"):
        usable_node(FakeHost(), lambda: cluster, classes=["fast"])
    assert ("get", "storageclasses", "storage.k8s.io") in asked


def test_a_storage_class_that_is_not_there_is_told() -> None:
    cluster, _ = a_cluster()
    with pytest.raises(EnvironmentLacks, match=r"has no storage class `fast` \(it has: none\)"):
        usable_node(FakeHost(), lambda: cluster, classes=["fast"])
