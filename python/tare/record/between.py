"""What a record keeps of the network and the clocks between the hosts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Offset:
    """Difference of two clocks."""

    offset_s: float
    """Seconds by which the answering host's clock is ahead of the asking host's; in `clocks` of a record, the
    client's ahead of the SUT's."""
    bound_s: float
    """Uncertainty of that, in seconds to either side."""
    at_s: float
    """When, by the asking host's CLOCK_MONOTONIC."""


@final
@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Round trips by UDP between idle hosts, over the measured addresses."""

    least_s: float
    """The fastest, in seconds."""
    median_s: float
    """Their median, in seconds."""
    sent: int
    """How many were answered."""
    lost: int
    """How many were not, in addition."""


@final
@dataclass(frozen=True, slots=True)
class Throughput:
    """Throughput of one TCP connection between idle hosts, measured once per call of tare."""

    to_sut: float
    """Bytes a second to the SUT; in a link, to the answering host."""
    to_client: float
    """Bytes a second to the client; in a link, to the asking host."""


@final
@dataclass(frozen=True, slots=True)
class Sounding:
    """Clocks and round trips at one moment. In a link, "client" is the asking host, "SUT" the answering one."""

    clocks: Offset
    """Clock of the client's host minus the SUT's."""
    client_ahead_s: float
    """Seconds by which the wall clock of the client's host is ahead of its CLOCK_MONOTONIC."""
    round_trip: RoundTrip
    """Round trips from the client's host."""


@final
@dataclass(frozen=True, slots=True)
class Route:
    """How a host reaches another."""

    device: str | None
    """Interface; `null`: no route."""
    source: str | None
    """Its own address on that way."""
    gateway: str | None
    """Gateway, if there is one."""
    mtu: int | None
    """MTU of the interface."""
    speed_mbit: int | None
    """Link speed in Mbit/s; `null`: the driver reports none."""
    qdisc: str | None
    """Queueing discipline of the interface."""
    counters: Mapping[str, int | None] | None = None
    """Growth of the interface's counters, and of TCP's in the network namespace of the SUT, in the measure phase;
    `null` before, and in a link."""


@final
@dataclass(frozen=True, slots=True)
class Link:
    """Measurements between two hosts other than those of the client and of the first node."""

    asks: str
    """Name of the asking host."""
    answers: str
    """Name of the answering host."""
    route: Route
    """How the asking host reaches it."""
    before: Sounding
    """Before the run."""
    throughput: Throughput
    """Between the two."""
    after: Sounding | None = None
    """After the measure phase; `null` if the run did not get that far."""


@final
@dataclass(frozen=True, slots=True)
class Between:
    """Measurements between the hosts of a run: [Two hosts](../guides/two-hosts.md).

    With several nodes, "the SUT" is the first.
    """

    sut: str
    """Name of the SUT's host."""
    client: str
    """Name of the client's host."""
    addresses: Mapping[str, str]
    """Host → its address on the measured network."""
    one_boot: bool
    """Whether two hosts share a kernel, so that the figures are not of separate machines."""
    tare_bound_s: float
    """Uncertainty of the SUT's clock for tare, which times the phases."""
    before: Sounding
    """Before the run."""
    throughput: Throughput | None = None
    """Between client and SUT."""
    after: Sounding | None = None
    """After the measure phase; `null` if the run did not get that far."""
    sides: Mapping[str, Route] | None = None
    """`sut`, `client` and further nodes (`sut-2`, …) → the way of each host to the client's, or the client's to the
    SUT."""
    swapped: bool = False
    """Whether server and client were swapped: each on the host that the sites file gives to the other."""
    links: tuple[Link, ...] = ()
    """For a SUT whose nodes have hosts of their own: from the client to further nodes, and between nodes."""

    @property
    def ahead_s(self) -> Mapping[str, float]:
        """Host → seconds by which its CLOCK_MONOTONIC is ahead of the SUT's, from before the run."""
        nodes = {link.asks: link.before.clocks.offset_s for link in self.links if link.answers == self.sut}
        return {**nodes, self.client: self.before.clocks.offset_s}

    @property
    def client_wall_ahead_s(self) -> float:
        """Seconds by which the client's wall clock is ahead of the SUT's CLOCK_MONOTONIC, from before the run."""
        return self.before.client_ahead_s + self.before.clocks.offset_s

    def wall_ahead_s(self, host: str) -> float | None:
        """The same of a further node's host; `None` for other hosts."""
        to_first = (link.before for link in self.links if (link.asks, link.answers) == (host, self.sut))
        return next((seen.clocks.offset_s + seen.client_ahead_s for seen in to_first), None)

    def route_of(self, side: str) -> Route | None:
        """Return the way of a side's host; `None` if it was not looked up."""
        return (self.sides or {}).get(side)
