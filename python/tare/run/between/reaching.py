"""A connected site of sites.yaml as a machine for runs: engines and rights of each host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from docker import DockerClient

from tare.deployments.registry import DEPLOYMENTS, DeploymentFactory
from tare.errors import EnvironmentLacks, StudyError
from tare.images.image_store import ImageStore
from tare.plan.model import Plan
from tare.requirements import HostPlan
from tare.run.between.site import (
    LOCAL,
    Home,
    Reached,
    refuse_between,
    refuse_swap,
    site_machine,
    with_swapped_hosts,
)
from tare.run.interrupts import Interrupts
from tare.run.local import local_engine
from tare.run.machine import Machine
from tare.run.requirements import PlugIns, uses_of, uses_on
from tare.sites import Host
from tare.sites.connected import ConnectedSite, connected, session_of
from tare.sites.engine import connect
from tare.sites.engines import Engines
from tare.sites.facts import host_facts
from tare.sites.file import SiteSpec
from tare.sites.in_use import only_user
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost

_PING_S = 60.0


@dataclass(frozen=True)
class ReachedSite:
    """A connected site with the engine of each host, or why none answers there (`no_engine`).

    `deployments`: the deployments that plans may name.
    """

    connection: ConnectedSite
    reached: Mapping[str, Reached]
    no_engine: Mapping[str, str]
    deployments: Mapping[str, DeploymentFactory] = field(default_factory=lambda: DEPLOYMENTS)

    def refuse(self, plan: Plan, disk_bytes: float | None = None) -> None:
        """Raise `StudyError` or `EnvironmentLacks` with every reason why the plan cannot run on the site.

        `disk_bytes`: of the plan's loaded data, on all hosts of the SUT together.
        """
        refuse_between(plan, self.connection.site)
        if self.connection.spec.swap:
            facts = {name: host_facts(each.host) for name, each in self.reached.items()}
            refuse_swap(plan, self.connection.site, facts)
        if problems := list(self._blockers(plan, disk_bytes)):
            listed = "".join(f"\n  - {problem}" for problem in problems)
            name = self.connection.spec.name
            raise EnvironmentLacks(f"the site {name} cannot run {plan.study.name}; nothing was started:{listed}")

    def machine(self, plan: Plan, here: Machine, interrupts: Interrupts) -> Machine:
        """Return the site as a machine. `here`: the machine that tare runs on, where images are prepared."""
        home = Home(here.own.prepare, ImageStore(here.layout, here.ledger), self.connection.ledger)
        site, known = self.connection.site, (self.reached, home, interrupts, self.deployments)
        machine = site_machine(plan, site, *known)
        if not self.connection.spec.swap:
            return machine
        return replace(machine, swapped=site_machine(plan, with_swapped_hosts(site), *known, swapped=True))

    def _blockers(self, plan: Plan, disk_bytes: float | None) -> Iterator[str]:
        """Yield each obstacle in a sentence, with the host's name and what to do."""
        own, plug_ins, arms = self.connection.site, PlugIns(self.deployments), len(plan.study.arms)
        a_node = None if disk_bytes is None else disk_bytes / len(own.sut_hosts)
        sites = (own, with_swapped_hosts(own)) if self.connection.spec.swap else (own,)
        for name, uses in uses_on(plan, sites).items():
            reached = self.reached[name]
            with closing(Engines(reached.host)) as engines:
                # Named engines belong to the machine that tare runs on, and there to its servers.
                named = name == LOCAL and all(use.settings is not None for use in uses)
                there = HostPlan(
                    reached.host,
                    reached.layout,
                    uses,
                    plan.study,
                    engine=reached.engine,
                    no_engine=self.no_engine.get(name),
                    engines=engines if named else None,
                    in_sites=True,
                    address=own.addresses.get(name),
                    data_bytes=a_node,
                )
                yield from (f"{name}: {problem}" for problem in plug_ins.blockers(there, arms))
        with local_engine() as engine:  # images are prepared here for all hosts
            here = HostPlan(LocalHost(), default_layout(), uses_of(plan), engine=engine.client)
            yield from (f"here: {problem}" for problem in plug_ins.blockers_of_images(here, arms))


def refuse_site(spec: SiteSpec) -> None:
    """Raise `StudyError` for a site whose file rules out every run."""
    if spec.client in spec.nodes:
        alone = len(spec.nodes) == 1
        what = "one host for both parts" if alone else "its client on a node's host"
        hint = "name one host for `sut` and another for `client`" if alone else "give the client a host of its own"
        if alone:
            hint += ", or run tare on that host"
        raise StudyError(f"the site {spec.name} has {what}, where no study can run yet", hint=hint)


@contextmanager
def reached_site(
    spec: SiteSpec,
    store: Path | None = None,
    *,
    layout: Layout | None = None,
    deployments: Mapping[str, DeploymentFactory] = DEPLOYMENTS,
) -> Iterator[ReachedSite]:
    """Connect to the site while the `with` statement lasts. `store`: of the study that resumes there.

    Raises `EnvironmentLacks` if a host is unreachable or another tare runs that study there, and `StudyError` for a
    site that no run is possible on.
    """
    refuse_site(spec)
    session = None if store is None else session_of(store)
    with ExitStack() as stack:
        if store is not None:
            stack.enter_context(only_user(f"{store} on the site {spec.name}", f"{session} {spec.name}"))
        connection = stack.enter_context(connected(spec, session=session, layout=layout))
        reached: dict[str, Reached] = {}
        no_engine: dict[str, str] = {}
        for host in connection.site.hosts:
            engine = engine_of(connection, host, stack)
            if isinstance(engine, EnvironmentLacks):
                no_engine[host.name] = str(engine)
            reached[host.name] = Reached(
                host, connection.homes[host.name], None if isinstance(engine, EnvironmentLacks) else engine
            )
        yield ReachedSite(connection, reached, no_engine, deployments)


def engine_of(connection: ConnectedSite, host: Host, stack: ExitStack) -> DockerClient | EnvironmentLacks:
    """Return a client of the host's engine, open until `stack` closes, or why there is none."""
    try:
        client = connect(connection.engine_url(host), timeout_s=_PING_S)
    except EnvironmentLacks as error:
        return error
    stack.callback(client.close)
    return client
