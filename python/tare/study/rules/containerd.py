"""Rules for containerd's own containers: networks, and who shares them."""

from __future__ import annotations

from collections.abc import Iterator

from tare.deployments import CONTAINERD
from tare.study.model import ClientSpec, SutSpec
from tare.study.reading.document import KeyPath
from tare.study.rules.refusal import Refusal
from tare.study.values import NetworkKind

_OF_SUT = frozenset({NetworkKind.HOST, NetworkKind.BRIDGE})
_OF_CLIENT = frozenset({NetworkKind.HOST, NetworkKind.SHARED})
_NETWORK: KeyPath = ("sut", "network")


def refuse_containerd(sut: SutSpec, client: ClientSpec | None) -> Refusal | None:
    """Return the first reason why the two cannot be placed so; `None` if fine or without containerd."""
    return next(_faults(sut, client), None)


def _faults(sut: SutSpec, client: ClientSpec | None) -> Iterator[Refusal]:
    if client is not None and client.deployment == CONTAINERD and client.network not in _OF_CLIENT:
        why = f"a containerd container cannot be a client on `{client.network.value}`"
        hint = "use `client.network: host` or `shared`, or `client.deployment: container`"
        yield Refusal((("client", "network"), ("client", "deployment")), why, hint)
    if sut.deployment != CONTAINERD:
        return
    if sut.network not in _OF_SUT:
        why = f"containerd alone cannot publish ports (`{sut.network.value}`)"
        yield Refusal((_NETWORK, ("sut", "deployment")), why, "use `host` or `bridge`, or `deployment: container`")
    if sut.network is NetworkKind.BRIDGE:
        yield from _faults_on_bridge(sut, client)


def _faults_on_bridge(sut: SutSpec, client: ClientSpec | None) -> Iterator[Refusal]:
    """Check containers on a bridge: each has its own bridge, on which only the host has an address, too."""
    keys: tuple[KeyPath, ...] = (("client", "network"), _NETWORK, ("sut", "deployment"))
    if sut.nodes > 1:
        why = f"{sut.nodes} containerd containers would have separate bridges and could not reach each other"
        yield Refusal((("sut", "nodes"), _NETWORK), why, "use `network: host`, or `deployment: container`")
    if client is None:
        return
    if client.own_host:
        why = "no other host has a route to the bridge of a containerd container"
        yield Refusal((("client", "own_host"), _NETWORK), why, "use `sut.network: host`, or leave `own_host` out")
    if client.network is NetworkKind.BRIDGE:
        why = "a containerd container has a bridge of its own, and the client is on a bridge of the engine"
        yield Refusal(keys, why, "use `client.network: host`")
    if client.network is NetworkKind.SHARED and client.deployment == "container":
        why = "an engine's container cannot join the namespace of a containerd container"
        at: tuple[KeyPath, ...] = (("client", "deployment"), ("client", "network"), ("sut", "deployment"))
        yield Refusal(at, why, "use `client.deployment: bare` or `containerd`, or `client.network: host`")
