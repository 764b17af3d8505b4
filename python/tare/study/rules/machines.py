"""What a virtual machine around the SUT or the client can be combined with, and which keys go together."""

from __future__ import annotations

from collections.abc import Iterator

from tare.deployments import MACHINES
from tare.study.model import Placement, SutSpec, VmSpec
from tare.study.protocol_spec import DuetSpec, Repetition
from tare.study.reading.document import KeyPath
from tare.study.rules.placement import Refusal
from tare.study.values import NetworkKind

_NETWORKS = frozenset({NetworkKind.USER, NetworkKind.TAP})
_DIRECT = frozenset({"none", "directsync"})
"""Cache modes of QEMU's that open the disk's file with O_DIRECT (qemu(1), -drive cache=)."""
_DEPLOYMENT: KeyPath = ("sut", "deployment")
_SWAPPED = "a virtual machine has its CPUs from its start, and a duet swaps them"


def setting(sut: SutSpec) -> VmSpec | None:
    """How a SUT's machine is set up, the defaults where nothing is said; `None` of a SUT in no machine."""
    return sut.vm or VmSpec() if sut.deployment in MACHINES else None


def refuse(sut: SutSpec, client: Placement | None, protocol: Repetition) -> Refusal | None:
    """The first reason why these do not go together, `None` where they do."""
    return next(_reasons(sut, client, protocol), None)


def _reasons(sut: SutSpec, client: Placement | None, protocol: Repetition) -> Iterator[Refusal]:
    if client is not None and client.deployment in MACHINES:
        yield from _client(sut, client, protocol)
    elif client is not None and client.network in _NETWORKS:
        why = f"`{client.network}` is how a virtual machine is attached, and the client is in none"
        yield Refusal((("client", "network"),), why, "use host, bridge or shared for the client")
    if sut.deployment in MACHINES:
        yield from _machine(sut, client, protocol)
        return
    if sut.network in _NETWORKS:
        keys: tuple[KeyPath, ...] = (("sut", "network"), _DEPLOYMENT)
        why = f"`{sut.network}` is how a virtual machine is attached, and `{sut.deployment}` is none"
        yield Refusal(keys, why, "use `deployment: vm` or `vm-container`, or another network")
    if sut.vm is not None:
        given: list[KeyPath] = [("sut", "vm", key) for key in sorted(sut.vm.model_fields_set)]
        why = f"`vm` means nothing to the deployment `{sut.deployment}`"
        yield Refusal((*given, ("sut", "vm"), _DEPLOYMENT), why, "leave it out")


def _client(sut: SutSpec, client: Placement, protocol: Repetition) -> Iterator[Refusal]:
    """QEMU's own network reaches all that the host reaches; the bridge of a tap leads to its one machine only."""
    network, deployment = ("client", "network"), ("client", "deployment")
    if client.network is not NetworkKind.USER:
        why = f"on `{client.network}` a client in a virtual machine reaches no server"
        yield Refusal((network, deployment), why, "use `client.network: user`")
    if client.limits.memory is None:
        why = "a virtual machine has a size, and nothing says how much memory the client may use"
        yield Refusal((("client", "limits", "memory"), deployment), why, "set `client.limits.memory` for all arms")
    if sut.nodes > 1:
        why = f"from a virtual machine a client finds one address of its host, and not those of {sut.nodes} nodes"
        yield Refusal((deployment, ("sut", "nodes")), why, "use a client that is bare or in a container")
    if isinstance(protocol, DuetSpec):
        yield Refusal((deployment, ("protocol", "name")), _SWAPPED, "use `interleave`")


def _machine(sut: SutSpec, client: Placement | None, protocol: Repetition) -> Iterator[Refusal]:
    network: KeyPath = ("sut", "network")
    if client is None:
        why = "a program that needs no database cannot be placed in a virtual machine"
        yield Refusal((_DEPLOYMENT,), why, "use bare or container")
    if sut.network not in _NETWORKS:
        why = f"a virtual machine has a network of its own, so it cannot be on `{sut.network}`"
        yield Refusal((network, _DEPLOYMENT), why, "use `network: user` or `network: tap`")
    if sut.limits.memory is None:
        why = "a virtual machine has a size, and nothing says how much memory each arm may use"
        yield Refusal((("sut", "limits", "memory"), _DEPLOYMENT), why, "set `sut.limits.memory` for all arms")
    if client is not None and client.network not in {NetworkKind.HOST, NetworkKind.USER}:
        why = f"a client on `{client.network}` does not reach a virtual machine"
        yield Refusal((("client", "network"), _DEPLOYMENT), why, "use `client.network: host`")
    if sut.nodes > 1:
        why = f"{sut.nodes} virtual machines would be in networks of their own and not see each other"
        yield Refusal((("sut", "nodes"), _DEPLOYMENT), why, "use bare or container, or one node")
    yield from _disks(sut, setting(sut) or VmSpec())
    if isinstance(protocol, DuetSpec):
        yield Refusal((_DEPLOYMENT, ("protocol", "name")), _SWAPPED, "use `interleave`")


def _disks(sut: SutSpec, vm: VmSpec) -> Iterator[Refusal]:
    aio, cache, kind = ("sut", "vm", "aio"), ("sut", "vm", "cache"), ("sut", "storage", "kind")
    if vm.aio == "native" and vm.cache not in _DIRECT:
        why = f"`aio: native` needs a disk without the host's cache, which `cache: {vm.cache}` has"
        yield Refusal((aio, cache), why, "use `cache: none` or `directsync`, or `aio: threads`")
    if sut.limits.disk_iops is not None and vm.cache not in _DIRECT:
        why = f"by `cache: {vm.cache}` the host's page cache writes, which no control group's limit may see"
        yield Refusal((cache, ("sut", "limits", "disk_iops")), why, "use `cache: none` or `directsync`")
    if sut.storage.kind == "tmpfs" and vm.cache in _DIRECT:
        why = f"`cache: {vm.cache}` opens the disk with O_DIRECT, which not every kernel's tmpfs can"
        yield Refusal((cache, kind), why, "use `cache: writeback`")
    if sut.storage.cache == "warmed":
        why = "the page cache that counts is the machine's own, which begins empty"
        yield Refusal((("sut", "storage", "cache"), _DEPLOYMENT), why, "use `cache: dropped`")
