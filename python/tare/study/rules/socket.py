"""Rules for how clients reach a server beside them: at a Unix socket, or at a loopback address."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tare.study.model import ArmSettings, ClientSpec, Placement, SutSpec
from tare.study.rules.refusal import Refusal
from tare.study.values import NetworkKind

_DEPLOYMENTS = frozenset({"bare", "container"})
_ROOTLESS = "podman-rootless"
_NETWORK = ("sut", "network")


def refuse_socket_placement(sut: SutSpec, client: ClientSpec | None) -> Refusal | None:
    """Return the reason why the two cannot share a directory with a Unix socket; `None` if they can or need not."""
    return next(_faults(sut, client), None)


def _faults(sut: SutSpec, client: ClientSpec | None) -> Iterator[Refusal]:
    if client is not None and client.network is NetworkKind.SOCKET:
        yield Refusal((("client", "network"),), "`socket` is for the SUT", "use `client.network: host`")
    if sut.network is not NetworkKind.SOCKET or client is None:
        return
    for side, placed in (("sut", sut), ("client", client)):
        if placed.deployment not in _DEPLOYMENTS or placed.engine == _ROOTLESS or _in_pod(placed):
            why = f"the {side} shares no directory with a Unix socket: it is neither bare nor a container of root"
            hint = "use `bare`, or `container` without `pod` and rootless engine; or another network"
            yield Refusal(((side, "deployment"), (side, "engine"), _NETWORK), why, hint)
    if client.own_host:
        why = "a Unix socket reaches no other host, and `own_host` puts the client on one"
        yield Refusal((_NETWORK, ("client", "own_host")), why, "leave `own_host` out, or use another network")
    if client.network is not NetworkKind.HOST:
        why = f"a server at a Unix socket is in the host's network namespace, the client on `{client.network}`"
        yield Refusal((("client", "network"), _NETWORK), why, "use `client.network: host`")
    if sut.nodes > 1:
        why = f"{sut.nodes} nodes find each other by address, not by a Unix socket"
        yield Refusal((_NETWORK, ("sut", "nodes")), why, "use one node, or another network")
    if sut.tls:
        yield Refusal((_NETWORK, ("sut", "tls")), "there is no TLS on a Unix socket", "leave `tls` out")


def _in_pod(placed: Placement) -> bool:
    return isinstance(placed, SutSpec) and placed.pod is not None


def refuse_socket(settings: ArmSettings, servers: Collection[str], clients: Collection[str]) -> Refusal | None:
    """Return the reason why server or generator cannot use a Unix socket; `None` if they can or need not."""
    sut, workload = settings.sut, settings.workload_name
    if sut.network is not NetworkKind.SOCKET:
        return None
    if sut.database not in servers:
        why = f"tare cannot have {sut.database} serve clients at a Unix socket"
        return Refusal((_NETWORK, ("sut", "database")), why, f"use {_list(servers)}, or another network")
    if workload not in clients:
        why = f"the workload {workload} cannot connect to a Unix socket"
        return Refusal((_NETWORK, ("workload", "name")), why, f"use {_list(clients)}, or another network")
    return None


def refuse_bind(sut: SutSpec, client: ClientSpec | None) -> Refusal | None:
    """Return the reason why the SUT cannot listen at `sut.bind`; `None` if it can or need not."""
    if sut.bind is None:
        return None
    at = ("sut", "bind")
    if sut.network is not NetworkKind.HOST or sut.deployment not in _DEPLOYMENTS or sut.nodes > 1:
        why = "`bind` is for a single server, bare or in a container, in the host's network namespace"
        return Refusal((at, _NETWORK, ("sut", "deployment")), why, "leave `bind` out")
    if client is not None and (client.network is not NetworkKind.HOST or client.own_host):
        why = f"nothing outside the host's network namespace reaches {sut.bind}"
        return Refusal((("client", "network"), ("client", "own_host"), at), why, "use `client.network: host`")
    return None


def refuse_ipv6(settings: ArmSettings, servers: Collection[str]) -> Refusal | None:
    """Return the reason why the server cannot listen at ::1; `None` if it can or need not."""
    sut = settings.sut
    if sut.bind != "::1" or sut.database in servers:
        return None
    why = f"tare cannot have {sut.database or 'a program without a database'} listen at ::1"
    return Refusal((("sut", "bind"), ("sut", "database")), why, f"use {_list(servers)}, or leave `bind` out")


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
