"""What is measured between the SUT's host and the client's, before and after each run, and once a session."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from tare.errors import RunFailed
from tare.run.at_once import at_once
from tare.run.between.by_program import clocks_of, sounder_of
from tare.run.between.clocks import Exchange, Offset, SiteClock, offset_of
from tare.run.between.wire import Side, side_of
from tare.run.clock import Clock
from tare.sites import Host
from tare.sites.clocks import TellsTime
from tare.sites.echo import SoundsWire
from tare.sites.ledger import Ledger
from tare.sites.process import boot_id

_NS = 1e-9
_FILL_S = 1.0
_TRIES, _PROGRAMS = 20, 5
"""Exchanges by which tare knows the SUT's clock: with hosts that answer with their time, else by programs."""


@dataclass(frozen=True)
class RoundTrip:
    """Idle round trips between the measured addresses, by UDP, seconds. `lost`: of `sent` plus these."""

    least_s: float
    median_s: float
    sent: int
    lost: int


@dataclass(frozen=True)
class Throughput:
    """Bytes a second that one TCP connection carried, each way, measured once a session.

    Of a `Link`: to the host that answers, and to the one that asks.
    """

    to_sut: float
    to_client: float


@dataclass(frozen=True)
class Sounding:
    """At one moment.

    `clocks`: the client's host's less the SUT's. `client_ahead_s`: on the client's host, wall less monotonic clock.
    Of a `Link`: of the host that asks, less that of the one that answers.
    """

    clocks: Offset
    client_ahead_s: float
    round_trip: RoundTrip


@dataclass(frozen=True)
class Link:
    """Between two hosts that are not client and first node. `route`: how the one that asks sends."""

    asks: str
    answers: str
    route: Side
    before: Sounding
    throughput: Throughput
    after: Sounding | None = None


@dataclass(frozen=True)
class Between:
    """What the record keeps. `one_boot`: two hosts have one kernel, so that figures are not of two machines.

    `tare_bound_s`: how well tare, which times the phases, knows the SUT's clock. `sides`: what
    counters of each host grew by in the measure phase, with the interface by which it reaches the other.
    """

    sut: str
    client: str
    addresses: Mapping[str, str]
    one_boot: bool
    tare_bound_s: float
    before: Sounding
    throughput: Throughput | None = None
    after: Sounding | None = None
    sides: Mapping[str, Any] | None = None
    swapped: bool = False
    """Whether server and client had changed places: each on the host that the file of sites has for the other."""
    links: tuple[Link, ...] = ()
    """Of a SUT whose nodes have hosts of their own: from the client to its further nodes, and among the nodes."""


@dataclass
class Wire:
    """Sounds the wire of a site. `clock`: the SUT's host's, set anew before each run."""

    sut: Host
    client: Host
    addresses: Mapping[str, str]
    clock: SiteClock
    ledgers: Mapping[str, Ledger]
    """By host."""
    works: Mapping[str, str]
    """Host → below which tare's programs may write there."""
    nodes: tuple[Host, ...] = ()
    """Of a SUT whose nodes have hosts of their own, `sut` the first."""
    carried: dict[tuple[str, str], Throughput] = field(default_factory=dict)
    devices: dict[str, Side] = field(default_factory=dict)
    """How the SUT's host and the client's reach each other, by `sut`, `client` and, of further nodes, `sut-2`, …"""
    routes: dict[tuple[str, str], Side] = field(default_factory=dict)
    """How one host reaches another, by their names."""
    swapped: bool = False

    @property
    def answering(self) -> tuple[Host, ...]:
        """The hosts that answer when the wire is sounded: those of the SUT."""
        return self.nodes or (self.sut,)

    def fill(self) -> None:
        """Measure throughput where that was not done yet, so that no run waits for it. Raises `RunFailed`."""
        pairs = [pair for pair in self._pairs() if (pair[0].name, pair[1].name) not in self.carried]
        if pairs:
            with self._served() as ports:
                for asks, answers in pairs:
                    self._fill(asks, answers, ports)

    def before(self) -> Between:
        """Sound before a run. Raises `RunFailed`."""
        at_once([self._set_clock, self._look_up_routes])
        with self._served() as ports:
            sounding = self._sound(self.client, self.sut, ports)
            throughput = self._fill(self.client, self.sut, ports)
            links = tuple(
                Link(
                    asks.name,
                    answers.name,
                    self.routes[asks.name, answers.name],
                    self._sound(asks, answers, ports),
                    self._fill(asks, answers, ports),
                )
                for asks, answers in self._further()
            )
        kernels = at_once([partial(boot_id, host) for host in (*self.answering, self.client)])
        return Between(
            sut=self.sut.name,
            client=self.client.name,
            addresses=self.addresses,
            one_boot=len(set(kernels)) < len(kernels),
            tare_bound_s=self.clock.bound_s,
            before=sounding,
            throughput=throughput,
            sides={side: asdict(device) for side, device in self.devices.items()},
            swapped=self.swapped,
            links=links,
        )

    def after(self, between: Between) -> Between:
        """Sound once more when the run is over."""
        hosts = {host.name: host for host in (*self.answering, self.client)}
        with self._served() as ports:
            again = self._sound(self.client, self.sut, ports)
            links = tuple(
                replace(link, after=self._sound(hosts[link.asks], hosts[link.answers], ports))
                for link in between.links
            )
        return replace(between, after=again, links=links)

    def side_of_host(self, host: Host) -> str:
        """What a host of the SUT is called in `devices`."""
        number = next((number for number, each in enumerate(self.nodes, 1) if each.name == host.name), 1)
        return "sut" if number == 1 else f"sut-{number}"

    def _look_up_routes(self) -> None:
        hosts = (*self.answering, self.client)
        routes = at_once([partial(self._routes_of, one, hosts) for one in hosts])
        self.routes = {pair: side for of_one in routes for pair, side in of_one.items()}
        of_nodes = {self.side_of_host(host): self.routes[host.name, self.client.name] for host in self.answering}
        self.devices = {**of_nodes, "client": self.routes[self.client.name, self.sut.name]}

    def _routes_of(self, one: Host, hosts: Sequence[Host]) -> Mapping[tuple[str, str], Side]:
        others = [other for other in hosts if other is not one]
        return {(one.name, other.name): side_of(one, self.addresses[other.name]) for other in others}

    def _pairs(self) -> Iterator[tuple[Host, Host]]:
        """Who asks whom."""
        yield self.client, self.sut
        yield from self._further()

    def _further(self) -> Iterator[tuple[Host, Host]]:
        """Who asks whom beside client and first node: the client every node, each node those before it."""
        for number, host in enumerate(self.nodes):
            if number:
                yield self.client, host
            yield from ((host, earlier) for earlier in self.nodes[:number])

    def _set_clock(self) -> None:
        """Lay tare's own clock on the SUT's host's, by the quickest of some exchanges."""
        exchanges, ahead_s = [], 0.0
        for _ in range(_TRIES if isinstance(self.sut, TellsTime) else _PROGRAMS):
            sent = self.clock.own.monotonic()
            answer = clocks_of(self.sut)
            returned = self.clock.own.monotonic()
            exchanges.append(Exchange(sent, answer.received_ns * _NS, answer.replied_ns * _NS, returned))
            ahead_s = answer.ahead_ns * _NS
        offset = offset_of(exchanges)
        own_ahead = self.clock.own.wall() - self.clock.own.monotonic()
        self.clock.ahead_s, self.clock.bound_s = offset.offset_s, offset.bound_s
        self.clock.wall_ahead_s = offset.offset_s + ahead_s - own_ahead

    @contextmanager
    def _served(self) -> Iterator[Mapping[str, int]]:
        """Host → the port at which it answers at its measured address while this lasts."""
        with ExitStack() as stack:
            yield {
                host.name: stack.enter_context(self._sounder(host).echo(self.addresses[host.name]))
                for host in self.answering
            }

    def _sound(self, asks: Host, answers: Host, ports: Mapping[str, int]) -> Sounding:
        answer = self._sounder(asks).sound(self.addresses[answers.name], ports[answers.name])
        exchanges = [Exchange(*(moment * _NS for moment in each)) for each in answer["exchanges"]]
        if not exchanges:
            raise RunFailed(
                f"{asks.name} gets no answer by UDP from {self.addresses[answers.name]} on {answers.name}",
                hint="open all ports of the measured network between the two hosts",
            )
        trips = [each.round_trip_s for each in exchanges]
        offset = offset_of(exchanges)
        # The offset is the answering clock less the asking one: turned round.
        clocks = Offset(-offset.offset_s, offset.bound_s, offset.at_s + offset.offset_s)
        trip = RoundTrip(min(trips), statistics.median(trips), len(exchanges), answer["lost"])
        return Sounding(clocks, answer["own_ahead_ns"] * _NS, trip)

    def _fill(self, asks: Host, answers: Host, ports: Mapping[str, int]) -> Throughput:
        """Measured once a session."""
        pair = asks.name, answers.name
        if pair not in self.carried:
            address, port = self.addresses[answers.name], ports[answers.name]
            answer = self._sounder(asks).fill(address, port, _FILL_S)
            self.carried[pair] = Throughput(answer["to_bytes_per_s"], answer["from_bytes_per_s"])
        return self.carried[pair]

    def _sounder(self, host: Host) -> SoundsWire:
        return sounder_of(host, self.ledgers[host.name], self.works[host.name], self.clock.own)


def on_sut_clock(between: Between, client_s: float) -> float:
    """A moment of the client's host's CLOCK_MONOTONIC on that of the SUT's, as known before the run."""
    return client_s - between.before.clocks.offset_s


def client_word_ahead_s(between: Between) -> float:
    """What the client's wall clock is ahead of the SUT's host's CLOCK_MONOTONIC."""
    return between.before.client_ahead_s + between.before.clocks.offset_s


@dataclass(frozen=True)
class HostClock:
    """What a host's clocks, monotonic and wall, are ahead of CLOCK_MONOTONIC of the first node's host."""

    monotonic_s: float
    wall_s: float


def clock_of_node(between: Between, host: str) -> HostClock | None:
    """Of the host of a further node, as known before the run; `None` of any other."""
    to_first = (link for link in between.links if (link.asks, link.answers) == (host, between.sut))
    sounding = next((link.before for link in to_first), None)
    if sounding is None:
        return None
    return HostClock(sounding.clocks.offset_s, sounding.client_ahead_s + sounding.clocks.offset_s)


def clocks_ahead(between: Between | None) -> Mapping[str, float]:
    """Host → what its CLOCK_MONOTONIC is ahead of that of the SUT's or first node's, as known before the run."""
    if between is None:
        return {}
    nodes = {link.asks: link.before.clocks.offset_s for link in between.links if link.answers == between.sut}
    return {**nodes, between.client: between.before.clocks.offset_s}


def clock_of(own: Clock) -> SiteClock:
    """One that agrees with our own until it is set."""
    return SiteClock(own)
