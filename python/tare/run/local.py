"""The machine that tare runs on, as the only host of a site."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace

from docker import DockerClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from tare.databases.registry import DATABASES
from tare.deployments import Instance
from tare.deployments.cgroup.placement import set_cpus
from tare.deployments.network.path import observe_path
from tare.deployments.network.unix_socket import observe_socket
from tare.deployments.registry import DEPLOYMENTS, DeploymentFactory
from tare.deployments.sweep import REMAINS, orphans, sweep
from tare.errors import EnvironmentLacks, StudyError
from tare.images import Image, ImageConfig
from tare.images.prepare import prepare
from tare.plan.model import Plan
from tare.record.network_path import NetworkPath
from tare.requirements import HostPlan
from tare.run.interrupts import Interrupts
from tare.run.machine import HostPart, Machine, facts_reader
from tare.run.requirements import PlugIns, needs_engine, uses_of
from tare.sites import Host, Site
from tare.sites.engine import connect
from tare.sites.engines import Engines
from tare.sites.facts import host_facts
from tare.sites.layout import Layout, default_layout
from tare.sites.ledger import Kind, Ledger, Made
from tare.sites.local import LocalHost
from tare.sites.sidecar.container import Sidecar
from tare.sites.sidecar.host import UserHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.unfinished import BESIDE_OTHERS_S, unfinished
from tare.workloads.registry import WORKLOADS

_PING_S = 60.0


@dataclass(frozen=True)
class Engine:
    """The host's default container engine, or why none answers."""

    client: DockerClient | None
    why_not: str | None
    others: Engines = field(default_factory=Engines)
    """Engines that arms select by name."""
    ending: ExitStack = field(default_factory=ExitStack)
    """Steps to take when the connection is closed."""


@contextmanager
def local_engine() -> Iterator[Engine]:
    """Connect to the local engine while the `with` statement lasts."""
    others = Engines(LocalHost())
    try:
        client = connect(timeout_s=_PING_S)
    except EnvironmentLacks as error:
        with closing(others):
            yield Engine(None, str(error), others)
        return
    with closing(client), closing(others), ExitStack() as ending:
        yield Engine(client, None, others, ending)


def host_of_user(engine: Engine, layout: Layout, ledger: Ledger) -> Host:
    """Return the local host. For a user who is not root, the engine reads what belongs to its containers."""
    if os.geteuid() == 0 or engine.client is None:
        return LocalHost()
    client = engine.client
    sidecar = Sidecar(LocalHost(), lambda: client, layout.home, ledger)
    engine.ending.callback(sidecar.close)
    return UserHost(sidecar, layout)


def local_machine(
    plan: Plan,
    engine: Engine,
    interrupts: Interrupts | None = None,
    layout: Layout | None = None,
    deployments: Mapping[str, DeploymentFactory] = DEPLOYMENTS,
) -> Machine:
    """Return the local machine with every plug-in of this installation."""
    layout = layout or default_layout()
    ledger = SqliteLedger(layout.ledger)
    host, needed = host_of_user(engine, layout, ledger), needs_engine(plan, deployments)
    own = HostPart(
        host=host,
        layout=layout,
        ledger=ledger,
        engine=engine.client if needed else None,
        prepare=_preparer(plan, host, engine.client, ledger, layout, deployments),
        host_facts=lambda: host_facts(host, data_path=str(layout.home)),
        engine_facts=facts_reader(engine.client, host, needed=needed),
    )
    return Machine(
        site=Site(sut=host, client=host),
        own=own,
        deployments=deployments,
        databases=DATABASES,
        workloads=WORKLOADS,
        observe_path=lambda server, client, _: _path(host, server, client),
        engines=engine.others,
        sweep=lambda: sweep_abandoned(host, engine, ledger, layout),
        sweep_own=lambda: sweep_own(host, engine, ledger),
        leave_clusters=lambda: leave_clusters(host, ledger),
        set_cpus=lambda instance, cpus: set_cpus(host, instance, cpus),
        interrupts=interrupts or Interrupts(),
    )


def sweep_abandoned(host: Host, engine: Engine, ledger: Ledger, layout: Layout) -> tuple[str, ...]:
    """Remove what dead tare processes left on this machine, whichever store they wrote to."""
    entries = [*ledger.abandoned(), *all_orphans(host, engine)]
    entries += unfinished(host, layout, older_than_s=BESIDE_OTHERS_S)
    return sweep(entries, {host.name: host}, engine.client, ledger, engine.others).sentences(REMAINS)


def sweep_own(host: Host, engine: Engine, ledger: SqliteLedger) -> tuple[str, ...]:
    """Remove what this process noted in the ledger and did not remove; only while nothing of it is in use.

    Not namespaces of clusters, which last as long as the study: `leave_clusters`.
    """
    host.rest()
    own = [entry for entry in ledger.entries() if entry.owner == ledger.owner and not entry.keep]
    entries = [entry for entry in own if entry.kind is not Kind.NAMESPACE]
    return sweep(entries, {host.name: host}, engine.client, ledger, engine.others).sentences(
        "what a failed teardown had left"
    )


def leave_clusters(host: Host, ledger: SqliteLedger) -> tuple[str, ...]:
    """Remove this process's namespaces from clusters; return a sentence for each that could not be removed.

    If the ledger cannot be read or written, its entries stay for the next tare: the study ends for another reason,
    which is reported.
    """
    with suppress(EnvironmentLacks):
        own = [each for each in ledger.entries() if each.owner == ledger.owner and each.kind is Kind.NAMESPACE]
        return tuple(sweep(own, {host.name: host}, None, ledger).failed)
    return ()


def all_orphans(host: Host, engine: Engine) -> tuple[Made, ...]:
    """Return what the labels of dead tare processes mark in every engine of the host that answers."""
    orphaned = [] if engine.client is None else list(orphans(engine.client, host))
    for name in engine.others.there():
        with suppress(EnvironmentLacks, DockerException, RequestException):  # what it has stays in the ledger
            orphaned += [
                replace(made, ident=f"{made.ident}@{name}") for made in orphans(engine.others.client(name), host)
            ]
    return tuple(orphaned)


def _path(host: Host, server: Instance, client: Instance) -> NetworkPath | None:
    socket = server.task.socket
    return observe_path(host, client, server) if socket is None else observe_socket(host, client, server, socket)


def _preparer(  # noqa: PLR0913, PLR0917 - all that preparing an image may take
    plan: Plan,
    host: Host,
    engine: DockerClient | None,
    ledger: Ledger,
    layout: Layout,
    deployments: Mapping[str, DeploymentFactory],
) -> Callable[[str], Image]:
    """Return the function that prepares images; a placeholder for each if no deployment of the plan opens them."""
    if not looks_into_images(plan, deployments):
        return _unopened
    return lambda reference: prepare(reference, host=host, layout=layout, ledger=ledger, engine=engine)


def looks_into_images(plan: Plan, deployments: Mapping[str, DeploymentFactory]) -> bool:
    """Whether a deployment of the plan opens its image; those of fakes do not."""
    placements = [each for arm in plan.study.arms for each in arm.settings.sides.values()]
    return any(deployments[placement.deployment].own_root for placement in placements)


def _unopened(reference: str) -> Image:
    digest = hashlib.sha256(reference.encode()).hexdigest()
    return Image(reference=reference, digest=digest, rootfs="/", engine_id=None, config=ImageConfig())


def refuse_without_rights(
    plan: Plan,
    disk_bytes: float | None,
    layout: Layout | None = None,
    deployments: Mapping[str, DeploymentFactory] = DEPLOYMENTS,
) -> None:
    """Raise `EnvironmentLacks` if this user cannot run the plan on this machine; nothing is started."""
    refuse_one_host(plan)
    with local_engine() as engine:
        refuse_blocked(plan, local_machine(plan, engine, None, layout, deployments), engine, disk_bytes)


def refuse_one_host(plan: Plan) -> None:
    """Raise `StudyError` if an arm's client needs a host of its own: the local machine is a single host."""
    for arm in plan.study.arms:
        if arm.settings.client is not None and arm.settings.client.own_host:
            raise StudyError(
                f"study {plan.study.name}: the client of the arm {arm.name} needs its own host (`own_host`)",
                hint="give a site of two hosts: --sites sites.yaml; `make hosts` makes two for a trial",
            )


def refuse_blocked(plan: Plan, machine: Machine, engine: Engine, data_bytes: float | None) -> None:
    """Raise `EnvironmentLacks` with every requirement of the plan that this machine or user does not meet."""
    here = HostPlan(
        machine.site.sut,
        machine.layout,
        uses_of(plan),
        plan.study,
        engine=engine.client,
        no_engine=engine.why_not,
        engines=engine.others,
        data_bytes=data_bytes,
    )
    plug_ins, arms = PlugIns(machine.deployments, machine.storages, machine.monitors), len(plan.study.arms)
    if problems := [*plug_ins.blockers(here, arms), *plug_ins.blockers_of_images(here, arms)]:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise EnvironmentLacks(f"this machine or user cannot run {plan.study.name}; nothing was started:{listed}")
