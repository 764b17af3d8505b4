"""Measurements between the hosts of a site: clocks and round trips before and after each run, throughput once."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from tare.errors import RunFailed
from tare.record.between import Between, Link, Offset, RoundTrip, Route, Sounding, Throughput
from tare.run.at_once import at_once
from tare.run.between.by_program import clocks_of, sounder_of
from tare.run.between.clocks import Exchange, SiteClock, offset_of
from tare.run.between.wire import route_to
from tare.sites import Host
from tare.sites.abilities import NetworkProbe
from tare.sites.ledger import Ledger
from tare.sites.process import boot_id

_NS = 1e-9
_FILL_S = 1.0
_TRIES, _PROGRAMS = 20, 5
"""Number of exchanges that align tare's clock with the SUT's: with hosts that report their time, or by programs."""


@dataclass
class Wire:
    """Measures the network of a site. `clock`: of the SUT's host, set anew before each run."""

    sut: Host
    client: Host
    addresses: Mapping[str, str]
    clock: SiteClock
    ledgers: Mapping[str, Ledger]
    """Host name → ledger."""
    works: Mapping[str, str]
    """Host name → directory that tare's programs may write below."""
    nodes: tuple[Host, ...] = ()
    """For a SUT whose nodes have hosts of their own; `sut` is the first."""
    carried: dict[tuple[str, str], Throughput] = field(default_factory=dict)
    devices: dict[str, Route] = field(default_factory=dict)
    """How the SUT's host and the client's reach each other, by `sut`, `client` and, of further nodes, `sut-2`, …"""
    routes: dict[tuple[str, str], Route] = field(default_factory=dict)
    """(Host, other host) → how the first reaches the other, by their names."""
    swapped: bool = False

    @property
    def answering(self) -> tuple[Host, ...]:
        """The hosts of the SUT, which answer when the network is measured."""
        return self.nodes or (self.sut,)

    def fill(self) -> None:
        """Measure the throughput of all pairs without one, so that no run waits for it. Raises `RunFailed`."""
        pairs = [pair for pair in self._pairs() if (pair[0].name, pair[1].name) not in self.carried]
        if pairs:
            with self._echo_servers() as ports:
                for asks, answers in pairs:
                    self._fill(asks, answers, ports)

    def before(self) -> Between:
        """Measure before a run. Raises `RunFailed`."""
        at_once([self._set_clock, self._look_up_routes])
        with self._echo_servers() as ports:
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
                for asks, answers in self._further_pairs()
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
            sides=self.devices,
            swapped=self.swapped,
            links=links,
        )

    def after(self, between: Between) -> Between:
        """Measure again after a run."""
        hosts = {host.name: host for host in (*self.answering, self.client)}
        with self._echo_servers() as ports:
            again = self._sound(self.client, self.sut, ports)
            links = tuple(
                replace(link, after=self._sound(hosts[link.asks], hosts[link.answers], ports))
                for link in between.links
            )
        return replace(between, after=again, links=links)

    def side_of_host(self, host: Host) -> str:
        """Return the key of a host of the SUT in `devices`."""
        number = next((number for number, each in enumerate(self.nodes, 1) if each.name == host.name), 1)
        return "sut" if number == 1 else f"sut-{number}"

    def _look_up_routes(self) -> None:
        hosts = (*self.answering, self.client)
        routes = at_once([partial(self._routes_of, one, hosts) for one in hosts])
        self.routes = {pair: side for of_one in routes for pair, side in of_one.items()}
        of_nodes = {self.side_of_host(host): self.routes[host.name, self.client.name] for host in self.answering}
        self.devices = {**of_nodes, "client": self.routes[self.client.name, self.sut.name]}

    def _routes_of(self, one: Host, hosts: Sequence[Host]) -> Mapping[tuple[str, str], Route]:
        others = [other for other in hosts if other is not one]
        return {(one.name, other.name): route_to(one, self.addresses[other.name]) for other in others}

    def _pairs(self) -> Iterator[tuple[Host, Host]]:
        """Yield all pairs (asking host, answering host)."""
        yield self.client, self.sut
        yield from self._further_pairs()

    def _further_pairs(self) -> Iterator[tuple[Host, Host]]:
        """Yield further pairs: the client asks every further node, each node the nodes before it."""
        for number, host in enumerate(self.nodes):
            if number:
                yield self.client, host
            yield from ((host, earlier) for earlier in self.nodes[:number])

    def _set_clock(self) -> None:
        """Align tare's own clock with the SUT's host, from the fastest of several exchanges."""
        exchanges, ahead_s = [], 0.0
        for _ in range(_TRIES if self.sut.clocks() is not None else _PROGRAMS):
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
    def _echo_servers(self) -> Iterator[Mapping[str, int]]:
        """Host → port on which it answers at its measured address while the `with` statement lasts."""
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
        # The offset is answering minus asking clock; `clocks` has the opposite sign.
        clocks = Offset(-offset.offset_s, offset.bound_s, offset.at_s + offset.offset_s)
        trip = RoundTrip(min(trips), statistics.median(trips), len(exchanges), answer["lost"])
        return Sounding(clocks, answer["own_ahead_ns"] * _NS, trip)

    def _fill(self, asks: Host, answers: Host, ports: Mapping[str, int]) -> Throughput:
        """Measure the throughput of a pair, once per call of tare."""
        pair = asks.name, answers.name
        if pair not in self.carried:
            address, port = self.addresses[answers.name], ports[answers.name]
            answer = self._sounder(asks).fill(address, port, _FILL_S)
            self.carried[pair] = Throughput(answer["to_bytes_per_s"], answer["from_bytes_per_s"])
        return self.carried[pair]

    def _sounder(self, host: Host) -> NetworkProbe:
        return sounder_of(host, self.ledgers[host.name], self.works[host.name], self.clock.own)
