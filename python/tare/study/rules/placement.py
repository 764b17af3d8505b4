r"""Which placements of SUT and client can reach each other, and mean what they say.

The SUT listens on loopback in the host's namespace, or on its own address in a namespace of its own.

    SUT \ client          host                   bridge                    shared
    host                 127.0.0.1              cannot reach loopback     there is no namespace to share
    bridge               the SUT's address      container to container    127.0.0.1 inside
    published-loopback   127.0.0.1 on the host  cannot reach loopback     would pass by the port
    published-address    the host's address     the host's address        would pass by the port

A bare process has no namespace of its own: as a SUT it is `host`, as a client `host` or `shared`, for it can
join the SUT's namespace.
"""

from __future__ import annotations

from dataclasses import dataclass

from tare.study.model import Placement, SutSpec
from tare.study.values import CgroupPlace, NetworkKind

_PUBLISHED = frozenset({NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS})


@dataclass(frozen=True)
class Refusal:
    """Why a combination is refused: the keys that clash, the one to name first; the reason; what to write."""

    keys: tuple[tuple[str | int, ...], ...]
    why: str
    hint: str


def refuse(sut: SutSpec, client: Placement | None, *, sut_isolates: bool, client_isolates: bool) -> Refusal | None:
    """The reason why the two cannot be placed so, `None` where they can. `client`: `None` where there is none.

    `…_isolates`: whether the side's deployment can have a network namespace of its own.
    """
    if client is None:
        return _cgroup("sut", sut, bare=not sut_isolates) or _sut_alone(sut, isolates=sut_isolates)
    return (
        _cgroup("sut", sut, bare=not sut_isolates)
        or _cgroup("client", client, bare=not client_isolates)
        or _sut_alone(sut, isolates=sut_isolates)
        or _client_alone(client, isolates=client_isolates)
        or _pair(sut, client)
    )


def _cgroup(side: str, placed: Placement, *, bare: bool) -> Refusal | None:
    """The root control group is where a program stands that nobody placed: no engine puts one there."""
    if placed.cgroup is not CgroupPlace.ROOT:
        return None
    keys = ((side, "cgroup"), (side, "deployment"))
    if not bare:
        return Refusal(keys, f"`{placed.deployment}` cannot stand in the root cgroup", "use `cgroup: run`, or bare")
    if placed.limits.in_cgroups:
        keys = ((side, "cgroup"), (side, "limits"))
        return Refusal(keys, "the root cgroup takes no limits", "use `cgroup: run`, or leave the limits out")
    return None


def _sut_alone(sut: SutSpec, *, isolates: bool) -> Refusal | None:
    keys = (("sut", "network"), ("sut", "deployment"))
    if sut.network is NetworkKind.SHARED:
        return Refusal(keys, "the SUT has nobody's namespace to share", "`shared` is for the client")
    if sut.network is not NetworkKind.HOST and not isolates:
        why = f"`{sut.deployment}` has no network namespace of its own, so it cannot be on `{sut.network}`"
        return Refusal(keys, why, "use `host`, or another deployment")
    return None


def _client_alone(client: Placement, *, isolates: bool) -> Refusal | None:
    keys = (("client", "network"), ("client", "deployment"))
    if client.network in _PUBLISHED:
        return Refusal(keys, "a client listens on no port that could be published", "use host, bridge or shared")
    if client.network is NetworkKind.BRIDGE and not isolates:
        why = f"`{client.deployment}` has no network namespace of its own, so it cannot be on `bridge`"
        return Refusal(keys, why, "use host or shared, or another deployment")
    return None


def _pair(sut: SutSpec, client: Placement) -> Refusal | None:
    keys = (("client", "network"), ("sut", "network"))
    if client.network is NetworkKind.SHARED and sut.network is NetworkKind.HOST:
        why = "the SUT is in the host's namespace and has none of its own to share"
        return Refusal(keys, why, "use `host` for the client, or `sut.network: bridge`")
    if client.network is NetworkKind.SHARED and sut.network in _PUBLISHED:
        why = f"a client in the SUT's namespace passes by the port of `{sut.network}`"
        return Refusal(keys, why, "use `sut.network: bridge` with a shared client")
    if client.network is NetworkKind.BRIDGE and sut.network in {NetworkKind.HOST, NetworkKind.PUBLISHED_LOOPBACK}:
        why = f"from a namespace of its own the client cannot reach the host's 127.0.0.1 (`{sut.network}`)"
        return Refusal(keys, why, "use `client.network: host`, or `sut.network: bridge`")
    return None
