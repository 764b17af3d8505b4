"""A site of several hosts as a machine for runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from docker import DockerClient

from tare.databases.registry import DATABASES
from tare.deployments import MACHINES, Instance
from tare.deployments.cgroup.placement import set_cpus
from tare.deployments.network.between import Ends, observe_between
from tare.deployments.registry import DEPLOYMENTS, DeploymentFactory
from tare.deployments.sweep import REMAINS, orphans, sweep
from tare.errors import StudyError
from tare.images import Image
from tare.images.image_store import ImageStore
from tare.images.ship import ImageDestination, ship
from tare.plan.model import Plan
from tare.protocols.registry import PROTOCOLS
from tare.record.host_facts import HostFacts
from tare.record.network_path import NetworkPath
from tare.record.network_path import Wire as PathWire
from tare.run.between.clocks import SiteClock
from tare.run.between.sounding import Wire
from tare.run.clock import SystemClock
from tare.run.interrupts import Interrupts
from tare.run.machine import EndHosts, HostPart, Machine, facts_reader
from tare.run.parity.declared import promised_between
from tare.run.requirements import needs_engine
from tare.sites import Host, Site
from tare.sites.facts import host_facts
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger
from tare.sites.local import LocalHost
from tare.sites.read_ahead import ReadAhead
from tare.sites.unfinished import BESIDE_OTHERS_S, unfinished
from tare.study.model import Arm
from tare.study.values import OWN_ADDRESS, NetworkKind
from tare.workloads.registry import WORKLOADS

LOCAL = "local"
_ALIKE = {"architecture": "architecture", "cpu_model": "CPU model", "cpu_count": "CPUs"}
"""Facts that must agree between two hosts that swap: limits would mean different things on them."""


@dataclass(frozen=True)
class Reached:
    """A connected host of a site: `layout` is its own TARE_HOME; `engine` is `None` if none answers."""

    host: Host
    layout: Layout
    engine: DockerClient | None


def refuse_between(plan: Plan, site: Site) -> None:
    """Raise `StudyError` for the first part of a plan that is impossible between a site's hosts."""
    if PROTOCOLS[plan.study.protocol.name].as_one:
        raise StudyError(
            f"study {plan.study.name}: `{plan.study.protocol.name}` runs arms on one machine at once, and this "
            f"site has {len(site.hosts)}",
            hint="use another protocol, or run it without --sites",
        )
    for arm in plan.study.arms:
        _refuse_count(plan, arm, len(site.sut_hosts))
        sut, client = arm.settings.sut, arm.settings.client
        if sut.deployment in MACHINES or (client is not None and client.deployment in MACHINES):
            raise StudyError(
                f"study {plan.study.name}: the arm {arm.name} is in a virtual machine, which tare starts only on "
                "the machine that it runs on",
                hint="leave the arm out (`only`, `exclude`), or run it without --sites",
            )
        if client is None:
            continue
        why = None
        if sut.nodes > 1 and sut.network is not NetworkKind.HOST:
            why = _why_no_cluster(sut.network)
        elif sut.bind is not None:
            why = f"`sut.bind` is {sut.bind}, a loopback address"
        elif sut.network in OWN_ADDRESS and site.sut.name not in site.container_addresses:
            why = f"`{sut.network.value}` needs a `container_address` of {site.sut.name}, which sites.yaml lacks"
        elif not promised_between(sut.network, client.network):
            why = f"from {sut.network.value} (SUT) to {client.network.value} (client) no other host is reachable"
        if why is not None:
            raise StudyError(
                f"study {plan.study.name}: the arm {arm.name} cannot have its client on another host: {why}",
                hint="leave the arm out (`only`, `exclude`), use host or published-address for the SUT, or run it "
                "without --sites",
            )


def _why_no_cluster(network: NetworkKind) -> str:
    """Explain why a cluster needs other networks: nodes announce an address of their own and one common port."""
    if network is NetworkKind.PUBLISHED_ADDRESS:
        return "nodes announce one common port, but engines publish a different one on each host: use `host`"
    return f"a node can be reached from the other nodes' hosts on `host` alone, not on `{network.value}`"


def _refuse_count(plan: Plan, arm: Arm, hosts: int) -> None:
    """Raise `StudyError` unless the SUT has as many nodes as the site has hosts for it."""
    nodes = arm.settings.sut.nodes
    if nodes == hosts:
        return
    here = f"{hosts} hosts for the SUT" if hosts > 1 else "one host for the SUT"
    wanted = f"{nodes} nodes that each need their own host" if nodes > 1 else "one server"
    listed = "one host" if nodes == 1 else f"a list of {nodes} hosts"
    raise StudyError(
        f"study {plan.study.name}: the arm {arm.name} has {wanted}, and the site has {here}",
        hint=f"give `sut` in sites.yaml {listed}, or run it without --sites",
    )


@dataclass(frozen=True)
class Home:
    """The machine that tare runs on.

    `prepare`: reference → image prepared here, in `image_store`. `ledger`: of what is made on any host.
    """

    prepare: Callable[[str], Image]
    image_store: ImageStore
    ledger: Ledger


def site_machine(  # noqa: PLR0913, PLR0917 - all that a site's machine is made of
    plan: Plan,
    site: Site,
    reached: Mapping[str, Reached],
    home: Home,
    interrupts: Interrupts | None = None,
    deployments: Mapping[str, DeploymentFactory] = DEPLOYMENTS,
    *,
    swapped: bool = False,
) -> Machine:
    """Return the machine of a site whose SUT, or each of its nodes, and client have hosts of their own.

    `reached`: these hosts, by name; `swapped`: they have swapped parts. Raises `StudyError` as `refuse_between`
    does.
    """
    ledger = home.ledger
    refuse_between(plan, site)
    sut, client = reached[site.sut.name], reached[site.client.name]
    wire = Wire(
        sut=sut.host,
        client=client.host,
        addresses=site.addresses,
        clock=SiteClock(SystemClock()),
        ledgers=dict.fromkeys(reached, ledger),
        works={name: str(each.layout.work) for name, each in reached.items()},
        swapped=swapped,
        nodes=tuple(reached[host.name].host for host in site.nodes),
    )
    needed = needs_engine(plan, deployments)
    parts = {name: _part(each, home, needed=needed) for name, each in reached.items()}
    own = parts.pop(site.sut.name)
    return Machine(
        site=site,
        own=own,
        deployments=deployments,
        databases=DATABASES,
        workloads=WORKLOADS,
        observe_path=lambda server, started, hosts: _path(site, wire, (server, started), hosts),
        sweep=lambda: sweep_site(reached, ledger),
        set_cpus=lambda instance, cpus: set_cpus(sut.host, instance, cpus),
        clock=wire.clock,
        interrupts=interrupts or Interrupts(),
        parts=parts,
        wire=wire,
    )


def with_swapped_hosts(site: Site) -> Site:
    """Return the site with server and client on each other's host."""
    return replace(site, sut=site.client, client=site.sut)


def refuse_swap(plan: Plan, site: Site, facts: Mapping[str, HostFacts]) -> None:
    """Raise `StudyError` if a swap of server and client makes no sense. `facts`: by host name."""
    name, study = site.labels.get("site", ""), plan.study

    def refused(why: str, hint: str) -> StudyError:
        return StudyError(f"the site {name} has `swap`, and {why}", hint=hint)

    if max((run.block for run in plan.runs), default=0) < 2:
        raise refused(f"study {study.name} has one block", "give it an even number of blocks, or leave `swap` out")
    alone = next((arm.name for arm in study.arms if arm.settings.client is None), None)
    if alone is not None:
        raise refused(f"the arm {alone} has no client to swap with", "leave `swap` out")
    for key, words in _ALIKE.items():
        there = {host.name: getattr(facts[host.name], key) for host in (site.sut, site.client)}
        if len(set(there.values())) > 1:
            listed = ", ".join(f"{value} on {host}" for host, value in there.items())
            raise refused(f"its hosts differ: {words} {listed}", "use two equal hosts, or leave `swap` out")


def sweep_site(reached: Mapping[str, Reached], ledger: Ledger) -> tuple[str, ...]:
    """Remove what dead tare processes left on the hosts of a site."""
    notes: list[str] = []
    for name, each in reached.items():
        entries = [entry for entry in ledger.abandoned() if entry.host == name]
        if each.engine is not None:
            entries += orphans(each.engine, LocalHost(), engine_host=name)
        entries += unfinished(each.host, each.layout, older_than_s=BESIDE_OTHERS_S)
        notes += sweep(entries, {name: each.host}, each.engine, ledger).sentences(REMAINS)
    return tuple(notes)


def _part(reached: Reached, home: Home, *, needed: bool) -> HostPart:
    """Return the part of a host. `needed`: whether a run needs an engine."""
    host, layout, engine, ledger = reached.host, reached.layout, reached.engine, home.ledger

    def ready(reference: str) -> Image:
        image = home.prepare(reference)
        if host.name == LOCAL:
            return image
        bare = not host.by_sidecar
        return ship(image, home.image_store, ImageDestination(host, layout, ledger, engine, bare=bare))

    ahead = ReadAhead(host)

    return HostPart(
        host=host,
        layout=layout,
        ledger=ledger,
        engine=engine if needed else None,
        prepare=ready,
        host_facts=lambda: host_facts(ahead.look(), data_path=str(layout.home)),
        engine_facts=facts_reader(engine, host, needed=needed),
    )


def _path(site: Site, wire: Wire, pair: tuple[Instance, Instance], hosts: EndHosts) -> NetworkPath | None:
    """Observe the path between a server and a client, given as `pair`."""
    (server, client), names = pair, site.addresses
    there, back = (
        wire.routes[one.name, other.name].device
        for one, other in ((hosts.client, hosts.server), (hosts.server, hosts.client))
    )
    between = PathWire(hosts.client.name, there, hosts.server.name, back)
    ends = Ends(hosts.client, names[hosts.client.name], hosts.server, names[hosts.server.name], between)
    return observe_between(ends, client, server)
