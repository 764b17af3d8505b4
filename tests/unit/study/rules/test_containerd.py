"""Where containers of containerd itself may stand, and which clients reach them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tare.study.model import ClientSpec, SutSpec
from tare.study.rules.placement import refuse_placement
from tare.study.rules.refusal import Refusal
from tare.study.values import CgroupPlace, EngineName, NetworkKind

OF_MACHINES = {NetworkKind.USER, NetworkKind.TAP}  # test_machines.py
SIDES = list(product(("bare", "container", "containerd"), sorted({*NetworkKind} - OF_MACHINES)))
HOST, BRIDGE, SHARED = NetworkKind.HOST, NetworkKind.BRIDGE, NetworkKind.SHARED
ON_HOST = {("bare", HOST), ("container", HOST), ("containerd", HOST)}
ALLOWED = {
    ("containerd", HOST): ON_HOST,
    ("containerd", BRIDGE): {*ON_HOST, ("bare", SHARED), ("containerd", SHARED)},
    ("container", BRIDGE): {
        *ON_HOST,
        ("container", BRIDGE),
        ("bare", SHARED),
        ("container", SHARED),
        ("containerd", SHARED),
    },
}


def refusal_of(sut: dict[str, Any], client: dict[str, Any]) -> Refusal | None:
    server = SutSpec(**{"image": "i", "database": "d", **sut})
    placed = ClientSpec(**{"image": "i", **client})
    isolate = {"sut_isolates": server.deployment != "bare", "client_isolates": placed.deployment != "bare"}
    return refuse_placement(server, placed, **isolate)


@pytest.mark.parametrize(
    "sut", [*ALLOWED, *product(("containerd",), {*NetworkKind} - OF_MACHINES - {HOST, BRIDGE})]
)
def test_the_matrix_of_networks(sut: tuple[str, NetworkKind]) -> None:
    server = {"deployment": sut[0], "network": sut[1]}
    refusals = {side: refusal_of(server, {"deployment": side[0], "network": side[1]}) for side in SIDES}
    assert {side for side, refusal in refusals.items() if refusal is None} == ALLOWED.get(sut, set())
    assert all(refusal.why and refusal.hint for refusal in refusals.values() if refusal is not None)


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_client_of_containerds_joins_a_container_of_any_engine_of_root(engine: EngineName) -> None:
    server = {"deployment": "container", "network": BRIDGE, "engine": engine}
    assert refusal_of(server, {"deployment": "containerd", "network": SHARED}) is None


ON_BRIDGE = {"deployment": "containerd", "network": BRIDGE}


@pytest.mark.parametrize(
    ("sut", "client", "key", "why"),
    [
        ({"nodes": 3}, {}, "sut.nodes", "3 containerd containers would have separate bridges"),
        ({}, {"own_host": True}, "client.own_host", "no other host has a route to the bridge"),
        ({}, {"deployment": "container", "network": BRIDGE}, "client.network", "has a bridge of its own"),
        ({}, {"deployment": "container", "network": SHARED}, "client.deployment", "cannot join the namespace"),
        ({}, {"deployment": "containerd", "network": BRIDGE}, "client.network", "cannot be a client on `bridge`"),
        ({"network": NetworkKind.PUBLISHED_LOOPBACK}, {}, "sut.network", "cannot publish ports"),
        ({"engine": "docker"}, {}, "sut.engine", "is not made by an engine"),
        ({"runtime": "crun"}, {}, "sut.runtime", "is not made by an engine"),
        ({"cgroup": CgroupPlace.ROOT}, {}, "sut.cgroup", "cannot be in the root cgroup"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_at_its_key(
    sut: dict[str, Any], client: dict[str, Any], key: str, why: str
) -> None:
    refusal = refusal_of({**ON_BRIDGE, **sut}, {"deployment": "bare", **client})
    assert refusal is not None
    assert ".".join(map(str, refusal.keys[0])) == key
    assert why in refusal.why
