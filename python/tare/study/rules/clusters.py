"""What a SUT of several nodes is refused for when a study is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tare.monitors import ONE_CONTAINER
from tare.study.model import ArmSettings
from tare.study.reading.document import KeyPath
from tare.study.rules.placement import Refusal
from tare.study.values import NetworkKind
from tare.workloads import Parameters

_NODES: KeyPath = ("sut", "nodes")
_PUBLISHED = frozenset({NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS})


def refuse(settings: ArmSettings, parameters: Parameters, clusters: Collection[str]) -> Refusal | None:
    """The first reason why an arm cannot have its nodes so, `None` where it can.

    `clusters`: databases of which several servers can be one.
    """
    return next(_reasons(settings, parameters, clusters), None)


def _reasons(settings: ArmSettings, parameters: Parameters, clusters: Collection[str]) -> Iterator[Refusal]:
    sut, client = settings.sut, settings.client
    replicas = parameters.replicas
    if replicas is not None and replicas > sut.nodes:
        keys: tuple[KeyPath, ...] = (("workload",), _NODES)
        why = f"the workload asks for {replicas} replicas of each row, and the SUT has {_told(sut.nodes)}"
        yield Refusal(keys, why, f"set `sut.nodes: {replicas}`, or ask for fewer")
    if sut.nodes == 1:
        return
    names = " or ".join(f"`{name}`" for name in sorted(clusters))
    if sut.database not in clusters:
        what = f"`{sut.database}`" if sut.database else f"the program of `{settings.workload_name}`"
        keys = (_NODES, ("sut", "database"))
        yield Refusal(keys, f"{what} is one server here and no cluster", f"leave `nodes` out, or use {names}")
    if sut.network in _PUBLISHED:
        why = f"nodes tell clients each other's own addresses, which go past the ports of `{sut.network.value}`"
        yield Refusal((("sut", "network"), _NODES), why, "use `host` or `bridge` for the SUT")
    if client is not None and client.network is NetworkKind.SHARED:
        why = f"{sut.nodes} nodes have no one network namespace that a client could share"
        yield Refusal((("client", "network"), _NODES), why, "use `host` or `bridge` for the client")
    if sut.storage.device is not None:
        why = f"{sut.nodes} nodes cannot all have their data on {sut.storage.device}"
        hint = "leave `device` out, then each has a loop device of its own; or use bind, volume, tmpfs or layer"
        yield Refusal((("sut", "storage", "device"), _NODES), why, hint)
    for name in sorted(ONE_CONTAINER & set(settings.monitors)):
        why = f"`{name}` looks at one container, and the SUT has {sut.nodes} nodes"
        hint = "leave it out: the probe, which every run has, watches each node"
        yield Refusal((("monitors", name), _NODES), why, hint)


def _told(nodes: int) -> str:
    return "one node" if nodes == 1 else f"{nodes} nodes"
