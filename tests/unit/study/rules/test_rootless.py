"""Where rootless Podman may place a container: on its own networks, and with files that its user can be given."""

from __future__ import annotations

from typing import Any

import pytest

from tare.study.model import ClientSpec, StorageSpec, SutSpec
from tare.study.registry import Usable
from tare.study.rules.placement import refuse_placement, refuse_storage
from tare.study.rules.refusal import Refusal
from tare.study.values import ROOTLESS_NETWORKS, EngineName, NetworkKind

ROOTLESS: EngineName = "podman-rootless"
OPEN = Usable(deployments=None, options=frozenset())


def server(network: NetworkKind = NetworkKind.HOST, engine: EngineName | None = ROOTLESS, **placed: Any) -> SutSpec:
    given = {"image": "i", "database": "d", "deployment": "container", **placed}
    return SutSpec(**given, network=network, engine=engine)


def refusal_of(sut: SutSpec, **client: Any) -> Refusal | None:
    placed = ClientSpec(**{"image": "i", "deployment": "bare", **client})
    isolate = {"sut_isolates": sut.deployment != "bare", "client_isolates": placed.deployment != "bare"}
    return refuse_placement(sut, placed, **isolate)


@pytest.mark.parametrize("network", sorted(NetworkKind))
def test_it_stands_on_the_hosts_network_or_one_of_a_users(network: NetworkKind) -> None:
    refusal = refusal_of(server(network))
    assert (refusal is None) is (network in {NetworkKind.HOST, *ROOTLESS_NETWORKS})
    if network is NetworkKind.BRIDGE:
        assert refusal is not None
        assert refusal.why == "the host has no route to `bridge` of rootless Podman"
        assert refusal.hint == "use host, pasta, rootlessport or slirp4netns"


@pytest.mark.parametrize("network", sorted(ROOTLESS_NETWORKS))
@pytest.mark.parametrize("engine", [None, "docker", "podman"])
def test_no_other_engine_has_a_users_networks(network: NetworkKind, engine: EngineName | None) -> None:
    refusal = refusal_of(server(network, engine))
    assert refusal is not None
    assert refusal.keys[0] == ("sut", "network")
    assert refusal.why == f"`{network}` is a network of rootless Podman"


@pytest.mark.parametrize(
    ("sut", "client", "key", "why"),
    [
        (server(deployment="bare"), {}, "sut.engine", "`bare` is not made by an engine"),
        (server(runtime="crun"), {}, "sut.runtime", "`podman-rootless` uses one runtime for all"),
        (server(NetworkKind.PASTA), {"network": NetworkKind.SHARED}, "client.network",
         "a client in the SUT's namespace bypasses the port of `pasta`"),
        (server(NetworkKind.PASTA), {"network": NetworkKind.PASTA, "deployment": "container", "engine": ROOTLESS},
         "client.network", "a client has no port to publish"),
        (server(NetworkKind.ROOTLESSPORT), {"network": NetworkKind.BRIDGE, "deployment": "container"},
         "client.engine", "client and SUT use two engines, which share no network"),
        (server(NetworkKind.SLIRP4NETNS), {"own_host": True}, "sut.network", "`slirp4netns` reaches no other host"),
    ],
)  # fmt: skip
def test_what_a_users_engine_cannot_do_is_refused_at_its_key(
    sut: SutSpec, client: dict[str, Any], key: str, why: str
) -> None:
    refusal = refusal_of(sut, **client)
    assert refusal is not None
    assert ".".join(map(str, refusal.keys[0])) == key
    assert why in refusal.why
    assert refusal.hint


@pytest.mark.parametrize("kind", ["bind", "volume", "layer", "tmpfs", "block", "nfs"])
def test_only_directories_of_the_host_are_handed_to_a_user(kind: str) -> None:
    refusal = refuse_storage(server().model_copy(update={"storage": StorageSpec(kind=kind)}), OPEN)
    assert (refusal is None) is (kind == "bind")
    if refusal is not None:
        assert refusal.keys[0] == ("sut", "storage", "kind")
        assert refusal.why == f"a rootless engine cannot use the storage `{kind}`, which only root can make"
