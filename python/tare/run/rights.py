"""What a plan needs of the user and the machine, checked before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tare.deployments import CONTAINERD, MACHINES, POD, Right
from tare.deployments.containerd.lacks import why_no_containerd
from tare.deployments.kube.lacks import why_no_cluster
from tare.deployments.pod.lacks import why_no_pods
from tare.deployments.registry import DeploymentFactory
from tare.deployments.rlimits import ceilings
from tare.deployments.vm.accelerator import why_no_machine
from tare.deployments.vm.vm import KERNEL_BYTES
from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.sites import Host
from tare.sites.engines import ROOTLESS, Engines, why_no_user_ranges
from tare.sites.layout import ADVICE, Layout, home_on
from tare.storage.nfs.client import why_no_nfs
from tare.storage.registry import STORAGES, StorageFactory
from tare.study.model import ArmSettings, Placement, Study
from tare.study.protocol_spec import DuetSpec
from tare.study.values import cpu_set, size_bytes

_TIMEOUT_S = 30.0
_SPARE_DISK = 1.1
"""Factor on the estimated disk space: a tenth more is cheaper than a study that ends with a full disk."""
_NAMED_ARMS = 4
_AS_USER = (
    "tare is not root: tare-probe samples without real-time priority and does not count block requests of control "
    "groups (`scheduler` and `block_source` in the record)"
)


@dataclass(frozen=True)
class Means:
    """What a host provides. `None`: could not be read, so it is not checked.

    `no_engine`: why none answers. `no_image`: image reference → why it is unavailable; available ones are missing.
    `no_monitor`, `no_named`: the same for monitors and for engines that arms select. `no_machine`: why no virtual
    machine can be started, if one is wanted; `no_nfs`: the same for NFS storage. `no_home`: why nothing can be
    stored in TARE_HOME. `no_pods`: a sentence for each missing program that pods need. `no_cluster`: why no cluster
    accepts this user's pods from this host, if one is wanted; `no_containerd`: the same for containerd.
    `no_sidecar`: why the engine cannot reach files and processes of its containers for a user who is not root.
    """

    root: bool
    no_engine: str | None
    cpus: frozenset[int] | None
    memory_bytes: int | None
    free_disk_bytes: int | None
    no_image: Mapping[str, str]
    no_monitor: Mapping[str, str] = field(default_factory=dict)
    no_machine: str | None = None
    no_home: str | None = None
    no_nfs: str | None = None
    no_named: Mapping[str, str] = field(default_factory=dict)
    no_pods: tuple[str, ...] = ()
    no_cluster: str | None = None
    no_sidecar: str | None = None
    no_containerd: str | None = None


@dataclass(frozen=True)
class Needs:
    """What the plug-ins of a plan need beyond the study's own settings.

    `rights`: by deployment. `disk_bytes`: for loaded data. `storage_rights`: by storage.
    """

    rights: Mapping[str, frozenset[Right]]
    disk_bytes: float | None
    storage_rights: Mapping[str, frozenset[Right]] = field(default_factory=dict)


def needs_of(
    plan: Plan,
    deployments: Mapping[str, DeploymentFactory],
    disk_bytes: float | None,
    storages: Mapping[str, StorageFactory] = STORAGES,
) -> Needs:
    """Return the needs of a plan, as its deployments and storages declare them."""
    names = {placement.deployment for _, placement in _placements(plan)}
    kinds = {arm.settings.sut.storage.kind for arm in plan.study.arms}
    return Needs(
        {name: deployments[name].needs for name in names},
        disk_bytes,
        {kind: storages[kind].needs for kind in kinds},
    )


@dataclass(frozen=True)
class Resources:
    """Resources that limits and data are checked against. `None`: could not be read."""

    cpus: frozenset[int] | None
    memory_bytes: int | None
    free_disk_bytes: int | None


def resources_of(host: Host, layout: Layout) -> Resources:
    """Read the resources of a host; `layout`: where data will lie."""
    return Resources(_online(host), _memory(host), _free(host, str(layout.home)))


def means_of(
    host: Host, layout: Layout, *, no_engine: str | None, no_image: Callable[[str], str | None], plan: Plan
) -> Means:
    """Read what the host provides. `no_image`: reference → why the image is unavailable, `None` if available."""
    references = {placement.image for _, placement in _placements(plan)}
    machines = any(placement.deployment in MACHINES for _, placement in _placements(plan))
    pods = any(placement.deployment == POD for _, placement in _placements(plan))
    by_containerd = {placement.network for _, placement in _placements(plan) if placement.deployment == CONTAINERD}
    nfs = any(arm.settings.sut.storage.kind == "nfs" for arm in plan.study.arms)
    has = resources_of(host, layout)
    return Means(
        root=host.run(["id", "-u"], timeout_s=_TIMEOUT_S).text.strip() == "0",
        no_engine=no_engine,
        cpus=has.cpus,
        memory_bytes=has.memory_bytes,
        free_disk_bytes=has.free_disk_bytes,
        no_image={each: why for each in sorted(references) if (why := no_image(each)) is not None},
        no_machine=why_no_machine(host) if machines else None,
        no_home=home_on(host, str(layout.home)).fault,
        no_nfs=why_no_nfs(host) if nfs else None,
        no_cluster=why_no_cluster(host, storage_classes(arm.settings for arm in plan.study.arms)) if pods else None,
        no_containerd=why_no_containerd(host, by_containerd) if by_containerd else None,
        no_pods=why_no_pods(host, (arm.settings.sut for arm in plan.study.arms)),
    )


def storage_classes(settings: Iterable[ArmSettings]) -> frozenset[str]:
    """Return the storage classes of the volumes that servers claim from a cluster."""
    named = {each.sut.storage.storage_class for each in settings}
    return frozenset(name for name in named if name is not None)


def lacking_engines(plan: Plan, engines: Engines) -> Mapping[str, str]:
    """Engine selected by an arm → why it is unavailable; available ones are missing."""
    missing: dict[str, str] = {}
    for name in sorted({placed.engine for _, placed in _placements(plan) if placed.engine is not None}):
        try:
            engines.client(name)
        except EnvironmentLacks as error:
            missing[name] = str(error)
            continue
        if name == ROOTLESS and (why := why_no_user_ranges(engines.facts(name))) is not None:
            missing[name] = why
    return missing


def lacking_runtimes(
    placements: Iterable[Placement], there: Callable[[], Collection[str] | None]
) -> Mapping[str, str]:
    """Runtime selected by an arm → why the engine does not have it.

    `there`: returns the engine's runtimes, called only if an arm selects one; `None` if the engine does not answer,
    which is reported elsewhere. A name with a dot is containerd's own form for a program, which engines need not
    list. Engines selected by arms are not checked here: they report themselves what they lack.
    """
    default = (placed for placed in placements if placed.engine is None)
    named = {placed.runtime for placed in default if placed.runtime and "." not in placed.runtime}
    known = there() if named else None
    return (
        {}
        if known is None
        else {
            name: (
                f"the engine has no runtime `{name}`, but {', '.join(sorted(known))} "
                f"(name it in /etc/docker/daemon.json, or by dockerd --add-runtime {name}=PATH)"
            )
            for name in sorted(named - set(known))
        }
    )


def lowered_limits(study: Study, host: Host) -> tuple[str, ...]:
    """Return a sentence for each limit on open files that the study sets and this host lowers."""
    ceiling = ceilings(host).get("nofile")
    asked = {
        (side, placed.limits.nofile)
        for arm in study.arms
        for side, placed in arm.settings.sides.items()
        if "nofile" in placed.limits.model_fields_set and ceiling is not None and placed.limits.nofile > ceiling
    }
    return tuple(
        f"{side}.limits.nofile: {nofile} requested, but this host allows {ceiling} (no CAP_SYS_RESOURCE)"
        for side, nofile in sorted(asked)
    )


def missing_without_root(host: Host) -> tuple[str, ...]:
    """Return a sentence on what records lack if tare is not root on the host."""
    user = host.run(["id", "-u"], timeout_s=_TIMEOUT_S, check=False).text.strip()
    return () if user in ("", "0") else (_AS_USER,)


def require(plan: Plan, needs: Needs, means: Means) -> None:
    """Raise `EnvironmentLacks` with every obstacle, not only the first."""
    if problems := lacking(plan, needs, means):
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise EnvironmentLacks(f"this machine or user cannot run {plan.study.name}; nothing was started:{listed}")


def lacking(plan: Plan, needs: Needs, means: Means) -> tuple[str, ...]:
    """List everything that the plan needs and the host lacks, a sentence each with what to do."""
    return (
        *_rights(plan, needs, means),
        *([f"{means.no_home}; {ADVICE}"] if means.no_home else []),
        *lacking_cpus(placements_of(plan), means.cpus),
        *_duet(plan, means),
        *lacking_memory(_at_once(plan), means.memory_bytes),
        *lacking_disk(needs.disk_bytes, means.free_disk_bytes, otherwise="set TARE_HOME to a larger file system"),
        *(f"the image {reference} is not available: {why}" for reference, why in means.no_image.items()),
        *(f"the monitor {name} cannot run: {why}" for name, why in means.no_monitor.items()),
        *([f"virtual machines cannot be started: {means.no_machine}"] if means.no_machine else []),
        *([f"the storage nfs is not available: {means.no_nfs}"] if means.no_nfs else []),
        *(f"no pod can be made: {why}" for why in means.no_pods),
        *([f"no cluster accepts pods: {means.no_cluster}"] if means.no_cluster else []),
        *([f"containerd cannot make containers: {means.no_containerd}"] if means.no_containerd else []),
    )


def placements_of(plan: Plan) -> tuple[Placement, ...]:
    """Return the placements of both sides of every arm."""
    return tuple(placement for _, placement in _placements(plan))


def needs_engine(plan: Plan, deployments: Mapping[str, DeploymentFactory]) -> bool:
    """Whether a container engine makes a server or client of the plan."""
    return any(Right.ENGINE in deployments[placement.deployment].needs for placement in placements_of(plan))


def _placements(plan: Plan) -> Iterator[tuple[str, Placement]]:
    for arm in plan.study.arms:
        for placement in arm.settings.sides.values():
            yield arm.name, placement


def _rights(plan: Plan, needs: Needs, means: Means) -> Iterator[str]:
    def arms_that_need(right: Right) -> str:
        users = (arm for arm, each in _placements(plan) if right in needs.rights[each.deployment])
        if right is Right.ENGINE:  # the one that answers by default; what is named is found by its name
            users = (
                arm for arm, each in _placements(plan) if right in needs.rights[each.deployment] and not each.engine
            )
        placed_by_tare = (arm for arm, each in _placements(plan) if right is Right.ROOT and each.engine == ROOTLESS)
        limited = (arm for arm, each in _placements(plan) if right is Right.ROOT and _is_limited(each, needs))
        stored = (arm.name for arm in plan.study.arms if right in _storage_needs(arm.settings, needs))
        return some_of(tuple(dict.fromkeys([*users, *placed_by_tare, *limited, *stored])), len(plan.study.arms))

    if not means.root and (arms := arms_that_need(Right.ROOT)):
        yield (
            "root is needed for bare tasks, pods, containerd, control groups (also of rootless Podman) and "
            f"storages ({arms}); run tare with sudo, or a study whose servers and clients are all containers with "
            "the storage `bind`, which needs the engine only"
        )
    if means.no_engine is not None and (arms := arms_that_need(Right.ENGINE)):
        yield f"a container engine is needed ({arms}): {means.no_engine}"
    if means.no_sidecar is not None and (arms := arms_that_need(Right.ENGINE)):
        yield f"without root, the engine must reach its containers' files ({arms}): {means.no_sidecar}"
    yield from means.no_named.values()


def some_of(arms: tuple[str, ...], of: int) -> str:
    """Name the first few arms and their total; empty for none."""
    if len(arms) > _NAMED_ARMS:
        return f"{len(arms)} of {of} arms: {', '.join(arms[:_NAMED_ARMS])} and {len(arms) - _NAMED_ARMS} more"
    return f"arms: {', '.join(arms)}" if arms else ""


def _storage_needs(settings: ArmSettings, needs: Needs) -> frozenset[Right]:
    """Return the rights that an arm's storage needs; an engine only if the deployment uses one.

    The layers in a virtual machine are not made by an engine.
    """
    wanted = needs.storage_rights.get(settings.sut.storage.kind, frozenset[Right]())
    return wanted & (needs.rights[settings.sut.deployment] | {Right.ROOT})


def _is_limited(placement: Placement, needs: Needs) -> bool:
    """Whether tare itself, and not an engine, must make control groups for the placement."""
    by_engine = Right.ENGINE in needs.rights[placement.deployment]
    return not by_engine and placement.limits.in_cgroups


def lacking_cpus(placements: Iterable[Placement], online: frozenset[int] | None) -> Iterator[str]:
    """Yield a sentence for CPUs that limits name and the host does not have."""
    if online is None:
        return
    wanted = {each.limits.cpus for each in placements if each.limits.cpus is not None}
    for cpus in sorted(wanted):
        if missing := cpu_set(cpus) - online:
            have = ",".join(str(cpu) for cpu in sorted(online))
            yield (
                f"limits.cpus {cpus!r} names CPU {','.join(map(str, sorted(missing)))}, but this host has {have}; "
                "change limits.cpus in the study"
            )


def _duet(plan: Plan, means: Means) -> Iterator[str]:
    """Yield a sentence for CPUs that a duet lacks: one set for each arm, shared by SUT and client."""
    spec = plan.study.protocol
    if not isinstance(spec, DuetSpec) or means.cpus is None:
        return
    for cpus in spec.cpus:
        if missing := cpu_set(cpus) - means.cpus:
            have = ",".join(str(cpu) for cpu in sorted(means.cpus))
            yield (
                f"a duet needs CPUs {' and '.join(spec.cpus)}, one set per arm, and this host has no CPU "
                f"{','.join(map(str, sorted(missing)))} but {have}; change protocol.cpus, or use `interleave`"
            )


def _at_once(plan: Plan) -> Mapping[str, int]:
    """Who wants memory → bytes wanted at a time: each arm, in a duet each `ARM with BASELINE` together."""
    wanted = {arm.name: _wanted_memory(arm.settings) for arm in plan.study.arms}
    if not isinstance(plan.study.protocol, DuetSpec):
        return wanted
    baseline = plan.study.baseline
    pairs = {name: own for name, own in wanted.items() if name != baseline}
    return {f"{name} with {baseline}": own + wanted[baseline] for name, own in pairs.items()}


def lacking_memory(at_once: Mapping[str, int], there: int | None) -> Iterator[str]:
    """Yield a sentence for each arm that wants too much. `at_once`: who wants it → bytes wanted at a time."""
    for name, wanted in at_once.items():
        if there is not None and wanted > there:
            yield (
                f"arm {name} may use {wanted / 2**30:.1f} GiB of memory by its limits, but this host has "
                f"{there / 2**30:.1f} GiB; lower limits.memory"
            )


def _wanted_memory(settings: ArmSettings) -> int:
    """Memory of all nodes and of the client by their limits, in bytes."""
    client = 0 if settings.client is None else memory_of(settings.client)
    return settings.sut.nodes * memory_of(settings.sut) + client


def memory_of(placement: Placement) -> int:
    """Memory of a placement by its limits, in bytes; a virtual machine needs some more for its kernel."""
    limit, kernel = placement.limits.memory, placement.deployment in MACHINES
    return (0 if limit is None else size_bytes(limit)) + kernel * KERNEL_BYTES


def lacking_disk(disk_bytes: float | None, free: int | None, *, otherwise: str) -> Iterator[str]:
    """Yield a sentence if the disk is too small. `otherwise`: what to do where no space can be freed."""
    if disk_bytes is None or free is None:
        return
    if (wanted := disk_bytes * _SPARE_DISK) > free:
        yield (
            f"the data needs about {wanted / 1e9:.1f} GB of disk, but {free / 1e9:.1f} GB are "
            f"free; make room, or {otherwise}"
        )


def _online(host: Host) -> frozenset[int] | None:
    raw = host.read("/sys/devices/system/cpu/online")
    return cpu_set(raw.decode()) if raw else None


def _memory(host: Host) -> int | None:
    for line in (host.read("/proc/meminfo") or b"").decode().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def _free(host: Host, path: str) -> int | None:
    """Free bytes on the file system where `path` will be, from its nearest existing directory (df(1))."""
    while path != "/":
        done = host.run(["df", "--output=avail", "-B1", "--", path], timeout_s=_TIMEOUT_S, check=False)
        if done.code == 0:
            return int(done.text.split()[-1])
        path = path.rpartition("/")[0] or "/"
    return None
