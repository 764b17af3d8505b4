"""Each pairing of networks is allowed, or refused with its reason at the key that made the clash."""

from __future__ import annotations

from itertools import product

import pytest
from tests.integration.databases.test_unix_socket import TRIED as SOCKET
from tests.integration.deployments.test_network_path import DIRECT, PROXIED

from tare.errors import StudyError
from tare.study.model import ClientSpec, LimitsSpec, SutSpec
from tare.study.protocol_spec import InterleaveSpec
from tare.study.reading.load import loads
from tare.study.registry import Registry
from tare.study.rules.placement import refuse_machine, refuse_placement
from tare.study.rules.refusal import Refusal
from tare.study.values import NetworkKind

MACHINES = ("vm", "vm-container")
SERVERS = {
    *product(("bare", "container"), ("host",)),
    *product(("container",), ("bridge", "published-loopback", "published-address")),
    *product(MACHINES, ("user", "tap")),
}
ALLOWED = {
    # (SUT's deployment and network, client's deployment and network)
    *product({("bare", "host"), ("container", "host")}, {("bare", "host"), ("container", "host")}),
    *product(
        {("container", "bridge")},
        {
            ("bare", "host"),
            ("container", "host"),
            ("container", "bridge"),
            ("bare", "shared"),
            ("container", "shared"),
        },
    ),
    *product({("container", "published-loopback")}, {("bare", "host"), ("container", "host")}),
    *product(
        {("container", "published-address")}, {("bare", "host"), ("container", "host"), ("container", "bridge")}
    ),
    *product(product(MACHINES, ("user", "tap")), {("bare", "host"), ("container", "host")}),
    *product(SERVERS, product(MACHINES, ("user",))),
    (("bare", "untracked"), ("bare", "shared")),
    *SOCKET,
}
SIDES = list(product(("bare", "container", *MACHINES), (kind.value for kind in NetworkKind)))


@pytest.mark.parametrize("sut", SIDES)
def test_the_matrix_of_placements(sut: tuple[str, str]) -> None:
    """One case for each server, and all clients in it: 4096 cases would take longer to name than to check."""
    refusals = {client: refusal_of(sut, client) for client in SIDES}
    assert {client for client, refusal in refusals.items() if refusal is None} == {
        client for server, client in ALLOWED if server == sut
    }
    assert all(refusal.why and refusal.hint for refusal in refusals.values() if refusal is not None)


def refusal_of(sut: tuple[str, str], client: tuple[str, str]) -> Refusal | None:
    limits = LimitsSpec(memory="1G")
    server = SutSpec(image="i", database="d", deployment=sut[0], network=NetworkKind(sut[1]), limits=limits)
    placed = ClientSpec(image="i", deployment=client[0], network=NetworkKind(client[1]), limits=limits)
    isolate = {"sut_isolates": sut[0] != "bare", "client_isolates": client[0] != "bare"}
    return refuse_machine(server, placed, InterleaveSpec()) or refuse_placement(server, placed, **isolate)


def test_each_that_is_allowed_is_tried_on_a_real_engine() -> None:
    tried = {((server, of.value), (client, by.value)) for server, of, client, by, _ in DIRECT}
    tried |= SOCKET
    tried |= {(("container", of.value), (client, by.value)) for of, client, by in PROXIED}
    assert tried == {pair for pair in ALLOWED if not {pair[0][0], pair[1][0]} & set(MACHINES)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bare: {sut.deployment: bare}", "bare: {sut.deployment: bare, sut.network: bridge}",
         r"levels\.bare\.sut\.network: `bare` has no network namespace.*\(arm 'bare-load-1'\)"),
        ("  network: host\n", "  network: bridge\n",
         r":24:14: factors\.path\.levels\.bare\.sut\.deployment: `bare` has no network namespace"),
        ("sut.network: published-loopback", "sut.network: published-loopback, client.network: shared",
         r"levels\.published\.client\.network: a client in the SUT's namespace bypasses the port"),
        ("  deployment: bare\nworkload", "  deployment: container\n  network: bridge\nworkload",
         r"client\.network: from another namespace, the client cannot reach the host's 127\.0\.0\.1"),
        ("sut.network: bridge", "sut.network: shared",
         r"levels\.bridge\.sut\.network: the SUT has no other namespace"),
    ],
)  # fmt: skip
def test_a_clash_is_named_where_it_was_made(
    old: str, new: str, message: str, text: str, registry: Registry
) -> None:
    assert old in text
    with pytest.raises(StudyError, match=message) as raised:
        loads(text.replace(old, new, 1), registry)
    assert raised.value.hint


def test_a_level_that_makes_a_bridged_client_impossible_is_the_one_named(text: str, registry: Registry) -> None:
    bridged = text.replace("  deployment: bare\nworkload", "  deployment: container\n  network: bridge\nworkload")
    bridged = bridged.replace("bare: {sut.deployment: bare}", "bare: {sut.network: published-address}")
    bridged = bridged.replace("host: {}", "host: {sut.network: bridge}").replace(
        "bridge: {sut.network: bridge}", "bridge: {sut.network: bridge, sut.limits.cpus: '1'}"
    )
    with pytest.raises(StudyError, match=r"factors\.path\.levels\.published\.sut\.network: from another namespace"):
        loads(bridged, registry)


@pytest.mark.parametrize(
    ("sut", "client", "key"),
    [
        ("host", "host", None),
        ("host", "bridge", None),
        ("published-address", "bridge", None),
        ("bridge", "host", None),
        ("macvlan", "bridge", None),
        ("ipvlan", "host", None),
        ("published-loopback", "host", "sut"),
        ("host", "shared", "client"),
        ("host", "macvlan", "client"),
    ],
)
def test_a_client_on_a_host_of_its_own_takes_ways_that_leave_the_host(
    sut: str, client: str, key: str | None
) -> None:
    server = SutSpec(image="i", database="d", deployment="container", network=NetworkKind(sut))
    placed = ClientSpec(image="i", deployment="container", network=NetworkKind(client), own_host=True)
    refusal = refuse_placement(server, placed, sut_isolates=True, client_isolates=True)
    assert (None if refusal is None else refusal.keys[0]) == (None if key is None else (key, "network"))


@pytest.mark.parametrize("network", ["macvlan", "ipvlan"])
def test_an_address_of_its_own_is_for_a_client_on_another_host(network: str) -> None:
    server = SutSpec(image="i", database="d", deployment="container", network=NetworkKind(network))
    refusal = refuse_placement(
        server, ClientSpec(image="i", deployment="bare"), sut_isolates=True, client_isolates=False
    )
    assert refusal is not None
    assert f"a host cannot reach its own containers on `{network}`" in refusal.why


def placed(side: str, **more: object) -> ClientSpec | SutSpec:
    kind = SutSpec if side == "sut" else ClientSpec
    usual = {"image": "i", "deployment": "container", "network": NetworkKind.BRIDGE}
    return kind(**{**usual, **({"database": "d"} if side == "sut" else {}), **more})  # type: ignore[arg-type]  # as a study writes it


@pytest.mark.parametrize(
    ("sut", "client", "why"),
    [
        ({"engine": "podman", "deployment": "bare", "network": NetworkKind.HOST}, {"network": NetworkKind.HOST},
         "`bare` is not made by an engine"),
        ({"confinement": {"seccomp": "unconfined"}, "deployment": "bare", "network": NetworkKind.HOST},
         {"network": NetworkKind.HOST}, "`bare` is not made by an engine"),
        ({"engine": "podman"}, {"network": NetworkKind.BRIDGE}, "use two engines, which share no network"),
        ({"engine": "podman"}, {"network": NetworkKind.SHARED}, "use two engines, which share no network"),
        ({"engine": "podman"}, {"network": NetworkKind.HOST}, None),
        ({"engine": "podman"}, {"engine": "podman", "network": NetworkKind.SHARED}, None),
        ({"engine": "podman", "runtime": "crun"}, {"network": NetworkKind.HOST}, "uses one runtime for all"),
        ({"engine": "docker", "runtime": "crun"}, {"network": NetworkKind.HOST}, None),
        ({"confinement": {"capabilities": "none", "no_new_privileges": True}}, {"network": NetworkKind.HOST}, None),
    ],
)  # fmt: skip
def test_what_engines_make_and_share(sut: dict[str, object], client: dict[str, object], why: str | None) -> None:
    server, asking = placed("sut", **sut), placed("client", **client)
    assert isinstance(server, SutSpec)
    assert isinstance(asking, ClientSpec)
    refusal = refuse_placement(server, asking, sut_isolates=server.deployment != "bare", client_isolates=True)
    assert (refusal is None) if why is None else (refusal is not None and why in refusal.why)
