"""What a plan needs of each host of a site and the host lacks, checked before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tare.deployments import CONTAINERD, POD, Right
from tare.deployments.containerd.lacks import why_no_containerd
from tare.deployments.kube.lacks import why_no_cluster
from tare.deployments.pod.lacks import why_no_pods
from tare.deployments.registry import DEPLOYMENTS, DeploymentFactory
from tare.monitors import Monitor
from tare.monitors.registry import MONITORS
from tare.plan.model import Plan
from tare.run.between.site import LOCAL, Reached
from tare.run.monitoring.monitors import interval_of, others_of
from tare.run.rights import (
    lacking_cpus,
    lacking_disk,
    lacking_memory,
    lacking_runtimes,
    memory_of,
    resources_of,
    some_of,
    storage_classes,
)
from tare.sites import Site
from tare.sites.engine import engine_facts
from tare.sites.layout import home_on
from tare.sites.sidecar.host import why_no_sidecar
from tare.storage.nfs.client import why_no_nfs
from tare.storage.registry import STORAGES, StorageFactory
from tare.study.model import ArmSettings, Placement
from tare.study.values import OWN_ADDRESS

_QUICK_S = 30.0
_NOT_ITS_OWN = 3
_BINDS = f"""\
import errno, socket, sys
address = sys.argv[1]
with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as way:
    try:
        way.bind((address, 0))
    except OSError as error:
        sys.exit({_NOT_ITS_OWN} if error.errno == errno.EADDRNOTAVAIL else 0)
"""
"""The program exits with `_NOT_ITS_OWN` if no interface of the host has the address."""


@dataclass(frozen=True)
class Share:
    """A host's part in a plan: `placed` with their arms; `served`: settings of arms whose server runs there."""

    placed: tuple[tuple[str, Placement], ...] = ()
    served: tuple[ArmSettings, ...] = ()

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placements without their arms."""
        return tuple(placement for _, placement in self.placed)


@dataclass(frozen=True)
class Knowledge:
    """Known facts. `no_engine`: host → why none answers there; `disk_bytes`: of loaded data, on a host of the SUT.

    `addresses`: host → address that the others reach it at.
    """

    no_engine: Mapping[str, str]
    disk_bytes: float | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    deployments: Mapping[str, DeploymentFactory] = field(default_factory=lambda: DEPLOYMENTS)
    monitors: Mapping[str, Monitor] = field(default_factory=lambda: MONITORS)
    storages: Mapping[str, StorageFactory] = field(default_factory=lambda: STORAGES)


def shares(plan: Plan, sites: Sequence[Site]) -> Mapping[str, Share]:
    """Host → its share of the plan. `sites`: one, or two if server and client swap hosts."""
    found: dict[str, Share] = {}

    def add(name: str, arm: str, placement: Placement, *served: ArmSettings) -> None:
        share = found.get(name, Share())
        found[name] = Share((*share.placed, (arm, placement)), (*share.served, *served))

    for site in sites:
        for arm in plan.study.arms:
            for host in site.sut_hosts:
                add(host.name, arm.name, arm.settings.sut, arm.settings)
            if arm.settings.client is not None:
                add(site.client.name, arm.name, arm.settings.client)
    return found


def lacking_on(reached: Reached, share: Share, known: Knowledge) -> Iterator[str]:
    """Yield a sentence for each obstacle on the host, without the host's name."""
    host = reached.host
    needs = {right for each in share.placements for right in known.deployments[each.deployment].needs}
    if host.run(["id", "-u"], timeout_s=_QUICK_S).text.strip() != "0":
        yield from _without_root(reached, share, known, needs)
    if host.run(["sh", "-c", "command -v python3"], timeout_s=_QUICK_S, check=False).code != 0:
        yield "python3 is missing: tare needs it for bare tasks and to measure the cost of monitors; install it"
    if (fault := home_on(host, str(reached.layout.home)).fault) is not None:
        yield f"{fault}; give the host another `home` in sites.yaml"
    address = known.addresses.get(host.name)
    if address is not None:
        argv = ["python3", "-I", "-S", "-c", _BINDS, address]
        if host.run(argv, timeout_s=_QUICK_S, check=False).code == _NOT_ITS_OWN:
            yield (
                f"none of its interfaces has the address {address}; set `address` in sites.yaml to an address "
                "of this host on the measured network"
            )
    yield from _engines(reached, share, known, needs)
    yield from _resources(reached, share, known)
    yield from _plug_ins(reached, share, known)


def _without_root(reached: Reached, share: Share, known: Knowledge, needs: set[Right]) -> Iterator[str]:
    """Yield what a user who is not root cannot do there; servers and clients in containers need the engine only."""
    stored = {id(each.sut) for each in share.served if Right.ROOT in known.storages[each.sut.storage.kind].needs}

    def needs_root(placement: Placement) -> bool:
        rights = known.deployments[placement.deployment].needs
        by_tare = placement.limits.in_cgroups and Right.ENGINE not in rights
        return Right.ROOT in rights or by_tare or id(placement) in stored

    def arms(wanted: Callable[[Placement], bool]) -> str:
        return some_of(
            tuple(dict.fromkeys(arm for arm, each in share.placed if wanted(each))),
            len({arm for arm, _ in share.placed}),
        )

    advice = "log in as root or give it `sudo: true`"
    if listed := arms(needs_root):
        yield (
            f"root is needed for bare tasks, pods, control groups and storages other than `bind` ({listed}); "
            f"{advice}, or run a study whose servers and clients are all containers with the storage `bind`, "
            "which needs the engine only"
        )
    if listed := arms(lambda each: each.network in OWN_ADDRESS):
        yield (
            f"root is needed to see whether `macvlan` or `ipvlan` carries the traffic ({listed}); {advice}, or use "
            "another network"
        )
    if Right.ENGINE in needs and (why := why_no_sidecar(reached.host, reached.engine)) is not None:
        yield f"without root, the engine must reach its containers' files: {why}"


def _engines(reached: Reached, share: Share, known: Knowledge, needs: set[Right]) -> Iterator[str]:
    name = reached.host.name
    if Right.ENGINE in needs and name in known.no_engine:
        yield f"a container engine is needed: {known.no_engine[name]}"
    # Named engines belong to the machine that tare runs on (`Engines`), and there to its servers.
    if name != LOCAL or len(share.placed) > len(share.served):
        yield from (
            f"the engine `{named}` cannot be selected by name there; leave `engine` out of the study, and give the "
            "host the socket as `engine` in sites.yaml"
            for named in sorted({each.engine for each in share.placements if each.engine is not None})
        )
    engine = reached.engine
    yield from lacking_runtimes(
        share.placements, lambda: None if engine is None else engine_facts(engine)["engine_runtimes"]
    ).values()


def _resources(reached: Reached, share: Share, known: Knowledge) -> Iterator[str]:
    has = resources_of(reached.host, reached.layout)
    yield from lacking_cpus(share.placements, has.cpus)
    yield from lacking_memory({arm: memory_of(placed) for arm, placed in share.placed}, has.memory_bytes)
    if share.served:
        where = "set TARE_HOME" if reached.host.name == LOCAL else "set `home` in sites.yaml"
        otherwise = f"{where} to a larger file system"
        yield from lacking_disk(known.disk_bytes, has.free_disk_bytes, otherwise=otherwise)


def _plug_ins(reached: Reached, share: Share, known: Knowledge) -> Iterator[str]:
    """Check pods and containerd for both sides; NFS and monitors for the servers' hosts."""
    host = reached.host
    yield from (f"no pod can be made: {why}" for why in why_no_pods(host, (each.sut for each in share.served)))
    pods = any(each.deployment == POD for each in share.placements)
    if pods and (why := why_no_cluster(host, storage_classes(share.served))) is not None:
        yield f"no pod can be made: {why}"
    by_containerd = {each.network for each in share.placements if each.deployment == CONTAINERD}
    if by_containerd and (why := why_no_containerd(host, by_containerd)) is not None:
        yield f"containerd cannot make containers: {why}"
    if any(each.sut.storage.kind == "nfs" for each in share.served) and (why := why_no_nfs(host)) is not None:
        yield f"the storage nfs is not available: {why}"
    wanted = {name: spec for each in share.served for name, spec in others_of(each).items() if not spec.optional}
    for name, spec in sorted(wanted.items()):
        why = known.monitors[name].why_unavailable(host, interval_of(name, spec, 0.0), spec.options)
        if why is not None:
            yield f"the monitor {name} cannot run: {why}"
