"""Extra work of an attempt whose client or SUT nodes run on separate hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from tare.errors import RunFailed
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.run.at_once import at_once
from tare.run.attempt.context import RunContext, client_workdir_for, other_workdirs, workdir_on
from tare.run.attempt.directory import WorkDirectory, clear_later, closed_to_others, make_work_directory
from tare.run.attempt.job import Draft, Job
from tare.run.attempt.server import Sut, nodes_of
from tare.run.attempt.teardown import Teardown
from tare.run.between.clocks import must_agree, must_not_step
from tare.run.between.wire import counters, growth, route_to
from tare.run.machine import Machine
from tare.sites import Host, Process
from tare.study.model import ArmSettings
from tare.study.values import NetworkKind

Counters = Mapping[str, Mapping[str, int | None]]
"""Side or further node → counters of its host (see `run.between.wire.counters`). Empty with a single host."""


@dataclass(frozen=True)
class _Facts:
    host: HostFacts
    engine: EngineFacts | None


def take_hosts(job: Job, machine: Machine, draft: Draft, teardown: Teardown) -> WorkDirectory:
    """Make a work directory on each participating host and record the host's facts.

    Returns the work directory on the SUT's host, or on the first node's.
    """
    settings, site = job.arm.settings, machine.site
    first = workdir_on(machine, site.sut, job.token)
    apart = client_workdir_for(machine, settings, job.token) is not None
    workdirs = (first, *(other_workdirs(machine, settings, job.token) if apart else ()))
    clear_later([(each, machine.ledger_on(each.host)) for each in workdirs], teardown, named=bool(machine.parts))
    taken = at_once([partial(_taken, machine, settings, workdir) for workdir in workdirs])
    facts = {workdir.host.name: each for workdir, each in zip(workdirs, taken, strict=True)}
    draft.host, draft.engine = facts[site.sut.name].host, facts[site.sut.name].engine
    if apart:
        draft.client_host, draft.client_engine = facts[site.client.name].host, facts[site.client.name].engine
        for node in nodes_of(settings.sut.nodes) if site.nodes else ():
            of_node = facts[(name := site.host_of(node.number).name)]
            draft.of_nodes("on", {node.name: name})
            draft.of_nodes("host", {node.name: of_node.host})
            draft.of_nodes("engine", {node.name: of_node.engine})
    return first


def _taken(machine: Machine, settings: ArmSettings, workdir: WorkDirectory) -> _Facts:
    host = workdir.host
    facts, engines = machine.facts_of(host), machine.facts_of_engines(settings, host)
    make_work_directory(workdir, machine.ledger_on(host), closed=closed_to_others(facts, engines))
    return _Facts(facts, engines[0])


def with_wire(context: RunContext, draft: Draft) -> RunContext:
    """Measure the network between the hosts and add the client's work directory; unchanged on a single host."""
    client_workdir = client_workdir_for(context.machine, context.settings, context.token)
    if client_workdir is None:
        return context
    if context.machine.wire is not None:
        draft.between = context.machine.wire.before()
    return replace(context, client_workdir=client_workdir)


def must_be_routed(context: RunContext, sut: Sut) -> None:
    """Raise `RunFailed` unless the client's host sends to the SUT's own address over the measured network."""
    wire, settings = context.machine.wire, context.settings
    if wire is None or context.client_workdir is None or settings.sut.network is not NetworkKind.BRIDGE:
        return
    address, by = sut.first.instance.address, wire.addresses[wire.sut.name]
    route = route_to(wire.client, address)
    if (route.device, route.gateway) != (wire.devices["client"].device, by):
        seen = "has no route to it" if route.device is None else f"sends to it through {route.device}"
        raise RunFailed(
            f"the SUT on `bridge` has the address {address}, and {wire.client.name} {seen}, not via {by}",
            hint=f"`bridge` needs a route there (docs/guides/two-hosts.md): ip route add NETWORK via {by}",
        )


def remeasure_wire(context: RunContext, draft: Draft) -> None:
    """Measure the network and clocks between the hosts again, after the measure phase.

    Raises `RunFailed` if the clocks of the hosts cannot be mapped onto each other over the whole run, or if the
    wall clock of the client's host, or of a node that queries another, was set meanwhile.
    """
    wire, before = context.machine.wire, draft.between
    if wire is None or before is None:
        return
    draft.between = sounded = wire.after(before)
    if sounded.after is not None:
        must_agree(sounded.before.clocks, sounded.after.clocks, (sounded.sut, sounded.client))
        must_not_step(sounded.before.client_ahead_s, sounded.after.client_ahead_s, sounded.client)
    for link in sounded.links:
        if link.after is not None:
            must_agree(link.before.clocks, link.after.clocks, (link.answers, link.asks))
            must_not_step(link.before.client_ahead_s, link.after.client_ahead_s, link.asks)


def read_counters(context: RunContext, draft: Draft, sut: Sut | None) -> Counters:
    """Read the TCP counters of each side.

    A server in its own network namespace has counters of its own; a client's counters are those of its host.
    """
    wire = context.machine.wire
    if wire is None or draft.between is None:
        return {}
    boxed = sut is not None and context.settings.sut.network is not NetworkKind.HOST
    pids = [server.instance.process.pid for server in sut.servers] if sut is not None and boxed else []
    sides = {**dict(_sides(context)), "client": wire.client}
    pid_of = dict(zip(sides, pids, strict=False))
    counted = at_once(
        [partial(counters, host, wire.devices[side].device, pid_of.get(side)) for side, host in sides.items()]
    )
    return dict(zip(sides, counted, strict=True))


def note_counters(context: RunContext, draft: Draft, sut: Sut | None, before: Counters) -> None:
    """Record how much each counter has grown since `before`, with the network interface of each host."""
    wire, between = context.machine.wire, draft.between
    if wire is None or between is None:
        return
    sides = {
        side: replace(wire.devices[side], counters=growth(before[side], after))
        for side, after in read_counters(context, draft, sut).items()
    }
    draft.between = replace(between, sides=sides)


def wall_clocks_ahead_s(draft: Draft) -> Mapping[str, float]:
    """Further node on a host of its own → seconds by which that host's wall clock is ahead of the trace's clock."""
    if draft.between is None:
        return {}
    ahead_s = {name: draft.between.wall_ahead_s(node.on or "") for name, node in draft.nodes.items()}
    return {name: seconds for name, seconds in ahead_s.items() if seconds is not None}


def proxies_of(draft: Draft) -> Mapping[int, Process]:
    """Node number, counted from 0 → the docker-proxy in front of the node, where there is one."""
    paths = enumerate(node.path for node in draft.nodes.values())
    return {number: path.proxy for number, path in paths if path is not None and path.proxy is not None}


def _sides(context: RunContext) -> Iterator[tuple[str, Host]]:
    """Hosts of the SUT by their names in the record: `sut`, then `sut-2`, `sut-3` and so on."""
    for number, host in enumerate(context.machine.site.sut_hosts, 1):
        yield "sut" if number == 1 else f"sut-{number}", host
