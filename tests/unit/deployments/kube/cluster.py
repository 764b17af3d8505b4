"""An API server of a cluster in memory, behind the client that `Cluster` speaks by: objects by their paths."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tare.deployments.kube.api import Cluster

BOOT = "00000000-0000-4000-8000-000000000000"
NODE: dict[str, Any] = {
    "metadata": {"name": "node-1"},
    "status": {
        "addresses": [{"type": "Hostname", "address": "node-1"}, {"type": "InternalIP", "address": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "nodeInfo": {
            "bootID": BOOT,
            "containerRuntimeVersion": "containerd://1.6.20~ds1",
            "kubeletVersion": "v1.34.4",
        },
    },
}
CONFIGZ = {
    "kubeletconfig": {
        "containerRuntimeEndpoint": "unix:///run/c/containerd.sock",
        "podLogsDir": "/logs",
        "cpuManagerPolicy": "none",
    }
}


@dataclass
class Answer:
    status: int
    body: bytes

    def read(self) -> bytes:
        return self.body


def failure(status: int, message: str) -> Answer:
    return Answer(status, json.dumps({"kind": "Status", "status": "Failure", "message": message}).encode())


@dataclass
class FakeClient:
    """Answers as the API's server does: 404 for what is absent, 409 for what is there.

    `on_post`: what a controller or kubelet makes of a new object.
    """

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: dict[tuple[str, str], Answer | Exception] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    on_post: Callable[[str, dict[str, Any]], None] = lambda path, tree: None
    made: int = 0

    def param_serialize(self, method: str, path: str, **given: Any) -> tuple[Any, ...]:
        assert given["auth_settings"] == ["BearerToken"]
        return method, path, given["header_params"], given["body"], None

    def call_api(
        self, method: str, path: str, headers: Mapping[str, str], body: Any, _: None, *, _request_timeout: object
    ) -> Answer:
        assert _request_timeout is not None
        self.asked.append((method, path))
        for (verb, prefix), refusal in self.refusals.items():
            if verb == method and path.startswith(prefix):
                if isinstance(refusal, Exception):
                    raise refusal
                return refusal
        done: dict[str, Callable[[], Answer]] = {
            "GET": lambda: self._get(path),
            "POST": lambda: self._post(path, body),
            "DELETE": lambda: self._delete(path, body),
        }
        return done[method]()

    def _get(self, path: str) -> Answer:
        tree = self.objects.get(path)
        return failure(404, f"{path} not found") if tree is None else Answer(200, json.dumps(tree).encode())

    def _post(self, path: str, body: Any) -> Answer:
        if "selfsubjectaccessreviews" in path:
            return Answer(201, json.dumps({**body, "status": {"allowed": True}}).encode())
        place = f"{path}/{body['metadata']['name']}"
        if place in self.objects:
            return failure(409, f"{place} already exists")
        self.made += 1
        tree: dict[str, Any] = {**body, "metadata": {**body["metadata"], "uid": f"uid-{self.made}"}}
        self.objects[place] = tree
        if tree["kind"] == "Namespace":
            self.objects[f"{place}/serviceaccounts/default"] = {"metadata": {"name": "default"}}
        self.on_post(place, tree)
        return Answer(201, json.dumps(tree).encode())

    def _delete(self, path: str, body: Any) -> Answer:
        tree = self.objects.get(path)
        if tree is None:
            return failure(404, f"{path} not found")
        if body["preconditions"]["uid"] != tree["metadata"]["uid"]:
            return failure(409, "the UID in the precondition does not match")
        for place in [each for each in self.objects if each == path or each.startswith(f"{path}/")]:
            del self.objects[place]
        return Answer(200, b"{}")


def a_cluster(**given: Any) -> tuple[Cluster, FakeClient]:
    """One with a node that is the fake host."""
    client = FakeClient(**given)
    client.objects |= {
        "/api/v1/nodes": {"items": [NODE]},
        "/api/v1/nodes/node-1": NODE,
        "/api/v1/nodes/node-1/proxy/configz": CONFIGZ,
        "/api/v1/namespaces/kube-system": {"metadata": {"name": "kube-system", "uid": "of-this-cluster"}},
    }
    return Cluster(client, "https://cluster:6443"), client
