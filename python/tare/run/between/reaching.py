"""A connected site of sites.yaml as a machine for runs: engines and rights of each host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from docker import DockerClient

from tare.deployments.registry import DEPLOYMENTS, DeploymentFactory
from tare.errors import EnvironmentLacks, StudyError
from tare.images.image_store import ImageStore
from tare.plan.model import Plan
from tare.run.between.lacks import Knowledge, lacking_on, shares
from tare.run.between.site import Home, Reached, refuse_between, refuse_swap, site_machine, with_swapped_hosts
from tare.run.interrupts import Interrupts
from tare.run.local import local_engine, looks_into_images, why_no_image
from tare.run.machine import Machine
from tare.run.rights import placements_of
from tare.sites import Host
from tare.sites.connected import ConnectedSite, connected, session_of
from tare.sites.engine import connect
from tare.sites.facts import host_facts
from tare.sites.file import SiteSpec
from tare.sites.in_use import only_user
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

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
        if problems := list(self._lacking(plan, disk_bytes)):
            listed = "".join(f"\n  - {problem}" for problem in problems)
            name = self.connection.spec.name
            raise EnvironmentLacks(f"the site {name} cannot run {plan.study.name}; nothing was started:{listed}")

    def machine(self, plan: Plan, here: Machine, interrupts: Interrupts) -> Machine:
        """Return the site as a machine. `here`: the machine that tare runs on, where images are prepared."""
        home = Home(here.prepare, ImageStore(here.layout, here.ledger), self.connection.ledger)
        site, known = self.connection.site, (self.reached, home, interrupts, self.deployments)
        machine = site_machine(plan, site, *known)
        if not self.connection.spec.swap:
            return machine
        return replace(machine, swapped=site_machine(plan, with_swapped_hosts(site), *known, swapped=True))

    def _lacking(self, plan: Plan, disk_bytes: float | None) -> Iterator[str]:
        """Yield each obstacle in a sentence, with the host's name and what to do."""
        own = self.connection.site
        a_node = None if disk_bytes is None else disk_bytes / len(own.sut_hosts)
        known = Knowledge(self.no_engine, a_node, own.addresses, self.deployments)
        for name, share in shares(
            plan, (own, with_swapped_hosts(own)) if self.connection.spec.swap else (own,)
        ).items():
            yield from (f"{name}: {problem}" for problem in lacking_on(self.reached[name], share, known))
        if looks_into_images(plan, self.deployments):
            yield from _lacking_images(plan, default_layout())


def _lacking_images(plan: Plan, layout: Layout) -> Iterator[str]:
    """Yield each unavailable image; images are prepared for all hosts on the machine that tare runs on."""
    host, ledger = LocalHost(), SqliteLedger(layout.ledger)
    with local_engine() as engine:
        for reference in sorted({placement.image for placement in placements_of(plan)}):
            if (why := why_no_image(reference, host, engine.client, ledger, layout)) is not None:
                yield f"here: the image {reference} is not available: {why}"


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
