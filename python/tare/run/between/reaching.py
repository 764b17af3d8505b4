"""A site of sites.yaml, connected, as the machine that runs are made on: engines and rights of each host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from docker import DockerClient

from tare.deployments import Right
from tare.deployments.registry import DEPLOYMENTS, DeploymentFactory
from tare.errors import EnvironmentLacks, StudyError
from tare.images.image_store import ImageStore
from tare.plan.model import Plan
from tare.run.between.site import Home, Reached, refuse_between, refuse_swap, site_machine, turned
from tare.run.interrupts import Interrupts
from tare.run.machine import Machine
from tare.sites import Host
from tare.sites.connected import ConnectedSite, connected, session_of
from tare.sites.engine import connect
from tare.sites.facts import host_facts
from tare.sites.file import SiteSpec
from tare.sites.layout import Layout, home_on
from tare.study.model import Placement

_PING_S = 60.0
_QUICK_S = 30.0


@dataclass(frozen=True)
class ReachedSite:
    """A connected site with the engine of each host, or why none answers there (`no_engine`).

    `deployments`: those that plans may name.
    """

    connection: ConnectedSite
    reached: Mapping[str, Reached]
    no_engine: Mapping[str, str]
    deployments: Mapping[str, DeploymentFactory] = field(default_factory=lambda: DEPLOYMENTS)

    def refuse(self, plan: Plan) -> None:
        """Raise `StudyError` or `EnvironmentLacks` with all that keeps the plan from being run on the site."""
        refuse_between(plan, self.connection.site)
        if self.connection.spec.swap:
            facts = {name: host_facts(each.host) for name, each in self.reached.items()}
            refuse_swap(plan, self.connection.site, facts)
        if problems := list(self._lacking(plan)):
            listed = "".join(f"\n  - {problem}" for problem in problems)
            name = self.connection.spec.name
            raise EnvironmentLacks(f"the site {name} cannot run {plan.study.name}; nothing was started:{listed}")

    def machine(self, plan: Plan, here: Machine, interrupts: Interrupts) -> Machine:
        """The site as a machine. `here`: the machine tare runs on, where images are made ready."""
        home = Home(here.prepare, ImageStore(here.layout, here.ledger), self.connection.ledger)
        site, known = self.connection.site, (self.reached, home, interrupts, self.deployments)
        machine = site_machine(plan, site, *known)
        if not self.connection.spec.swap:
            return machine
        return replace(machine, swapped=site_machine(plan, turned(site), *known, swapped=True))

    def _lacking(self, plan: Plan) -> Iterator[str]:
        """A sentence each with the host's name and what to do."""
        sides: dict[str, list[Placement]] = {}
        own = self.connection.site
        for site in (own, turned(own)) if self.connection.spec.swap else (own,):
            for arm in plan.study.arms:
                for side, placement in arm.settings.sides.items():
                    for host in site.sut_hosts if side == "sut" else (site.client,):
                        sides.setdefault(host.name, []).append(placement)
        for name, placements in sides.items():
            yield from self._lacking_on(self.reached[name], placements)

    def _lacking_on(self, reached: Reached, placements: list[Placement]) -> Iterator[str]:
        host, name = reached.host, reached.host.name
        needs = {right for each in placements for right in self.deployments[each.deployment].needs}
        by_tare = any(
            each.limits.in_cgroups and Right.ENGINE not in self.deployments[each.deployment].needs
            for each in placements
        )
        if (Right.ROOT in needs or by_tare) and host.run(["id", "-u"], timeout_s=_QUICK_S).text.strip() != "0":
            what = "root is needed for bare tasks and control groups"
            yield f"{name}: {what}; log in as root, or give it `sudo: true`"
        if Right.ENGINE in needs and name in self.no_engine:
            yield f"{name}: a container engine is needed: {self.no_engine[name]}"
        if host.run(["sh", "-c", "command -v python3"], timeout_s=_QUICK_S, check=False).code != 0:
            yield f"{name}: python3 is missing: tare needs it for bare tasks and for what monitors cost; install it"
        if (fault := home_on(host, str(reached.layout.home)).fault) is not None:
            yield f"{name}: {fault}; give the host another `home` in sites.yaml"


def refuse_site(spec: SiteSpec) -> None:
    """Raise `StudyError` for a site on which no run can be made, as its file tells."""
    if spec.client in spec.nodes:
        alone = len(spec.nodes) == 1
        what = "one host for both parts" if alone else "its client on the host of a node"
        hint = "name one host for `sut` and another for `client`" if alone else "give the client a host of its own"
        if alone:
            hint += ", or run tare on that host"
        raise StudyError(f"the site {spec.name} has {what}, on which no study can be run yet", hint=hint)


@contextmanager
def reached_site(
    spec: SiteSpec,
    store: Path | None = None,
    *,
    layout: Layout | None = None,
    deployments: Mapping[str, DeploymentFactory] = DEPLOYMENTS,
) -> Iterator[ReachedSite]:
    """Connected while this lasts. `store`: whose study goes on where it was broken off.

    Raises `EnvironmentLacks` where a host cannot be reached, `StudyError` for a site on which no run can be made.
    """
    refuse_site(spec)
    session = None if store is None else session_of(store)
    with ExitStack() as stack:
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
    """A client of the host's engine until `stack` ends, or why there is none."""
    try:
        client = connect(connection.engine_url(host), timeout_s=_PING_S)
    except EnvironmentLacks as error:
        return error
    stack.callback(client.close)
    return client
