"""What is measured between the SUT's host and the client's, before and after each run, and once a session."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tare.errors import RunFailed, TimedOut
from tare.run.between.clocks import Exchange, Offset, SiteClock, offset_of
from tare.run.between.wire import Side, side_of
from tare.run.clock import Clock, Deadline
from tare.sites import Host, Output, Process
from tare.sites.clocks import TellsTime
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import alive, boot_id, to_ident

SOUNDER = Path(__file__).with_name("sounder.py")
_NS = 1e-9
_ROUND_TRIPS = 200
_FILL_S = 1.0
_SERVE_S, _CALL_S, _START_S, _POLL_S = 60.0, 60.0, 10.0, 0.01
_TRIES, _PROGRAMS = 20, 5
"""Exchanges by which tare knows the SUT's clock: with a host that tells time, and by programs elsewhere."""


@dataclass(frozen=True)
class RoundTrip:
    """Idle round trips between the measured addresses, by UDP, seconds. `lost`: of `sent` plus these."""

    least_s: float
    median_s: float
    sent: int
    lost: int


@dataclass(frozen=True)
class Throughput:
    """Bytes a second that one TCP connection carried, each way, measured once a session."""

    to_sut: float
    to_client: float


@dataclass(frozen=True)
class Sounding:
    """At one moment.

    `clocks`: the client's host's less the SUT's. `client_ahead_s`: on the client's host, wall less monotonic clock.
    """

    clocks: Offset
    client_ahead_s: float
    round_trip: RoundTrip


@dataclass(frozen=True)
class Between:
    """What the record keeps. `one_boot`: both hosts have one kernel, so that figures are not of two machines.

    `tare_bound_s`: how well tare, which tells when phases begin and end, knows the SUT's clock. `sides`: what
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


@dataclass(frozen=True)
class _Clocks:
    """`ahead_ns`: wall less monotonic clock."""

    received_ns: int
    replied_ns: int
    ahead_ns: int


@dataclass
class Wire:
    """Sounds the wire of a site. `clock`: the SUT's host's, set anew before each run."""

    sut: Host
    client: Host
    addresses: Mapping[str, str]
    clock: SiteClock
    ledgers: Mapping[str, Ledger]
    """By host."""
    throughput: Throughput | None = None
    devices: dict[str, Side] = field(default_factory=dict)
    swapped: bool = False

    def before(self, workdir: str) -> Between:
        """Sound before a run; `workdir`: a directory that exists on both hosts. Raises `RunFailed`."""
        self._set_clock()
        with self._served(workdir) as port:
            sounding = self._sound(port)
            if self.throughput is None:
                self.throughput = self._fill(port)
        self.devices = {
            "sut": side_of(self.sut, self.addresses[self.client.name]),
            "client": side_of(self.client, self.addresses[self.sut.name]),
        }
        return Between(
            sut=self.sut.name,
            client=self.client.name,
            addresses=self.addresses,
            one_boot=boot_id(self.sut) == boot_id(self.client),
            tare_bound_s=self.clock.bound_s,
            before=sounding,
            throughput=self.throughput,
            sides={side: asdict(device) for side, device in self.devices.items()},
            swapped=self.swapped,
        )

    def after(self, workdir: str, between: Between) -> Between:
        """Sound once more when the run is over."""
        with self._served(workdir) as port:
            return replace(between, after=self._sound(port))

    def _set_clock(self) -> None:
        """Lay tare's own clock on the SUT's host's, by the quickest of some exchanges."""
        exchanges, ahead_s = [], 0.0
        for _ in range(_TRIES if isinstance(self.sut, TellsTime) else _PROGRAMS):
            sent = self.clock.own.monotonic()
            answer = self._clocks()
            returned = self.clock.own.monotonic()
            exchanges.append(Exchange(sent, answer.received_ns * _NS, answer.replied_ns * _NS, returned))
            ahead_s = answer.ahead_ns * _NS
        offset = offset_of(exchanges)
        own_ahead = self.clock.own.wall() - self.clock.own.monotonic()
        self.clock.ahead_s, self.clock.bound_s = offset.offset_s, offset.bound_s
        self.clock.wall_ahead_s = offset.offset_s + ahead_s - own_ahead

    def _clocks(self) -> _Clocks:
        if isinstance(self.sut, TellsTime):
            read = self.sut.clocks()
            return _Clocks(read.monotonic_ns, read.monotonic_ns, read.wall_ns - read.monotonic_ns)
        return _Clocks(**json.loads(self._python(self.sut, "now")))

    @contextmanager
    def _served(self, workdir: str) -> Iterator[int]:
        """The port at which a sounder answers at the SUT's measured address while this lasts."""
        output = Output(f"{workdir}/sounder.stdout", f"{workdir}/sounder.stderr")
        self.sut.put(SOUNDER, f"{workdir}/sounder.py")
        words = ("serve", self.addresses[self.sut.name], f"{_SERVE_S:g}")
        argv = ["python3", "-I", "-S", f"{workdir}/sounder.py", *words]
        ledger = self.ledgers[self.sut.name]
        process = self.sut.start(argv, output=output, announce=noting(ledger, self.sut))
        try:
            yield self._port(process, output)
        finally:
            self.sut.run(["kill", "-s", "KILL", str(process.pid)], timeout_s=_CALL_S, check=False)
            ledger.forget(Kind.PROCESS, to_ident(process), host=self.sut.name)

    def _port(self, process: Process, output: Output) -> int:
        deadline = Deadline(self.clock.own, _START_S)
        while not (printed := self.sut.read(output.stdout) or b"").endswith(b"\n"):
            if not alive(self.sut, process):
                words = (self.sut.read(output.stderr) or b"").decode(errors="replace").strip().splitlines()
                at = self.addresses[self.sut.name]
                raise RunFailed(
                    f"cannot listen at {at} on {self.sut.name}: {words[-1] if words else 'it printed nothing'}",
                    hint="`address` in sites.yaml must be that host's own, on the measured network",
                )
            if deadline.passed:
                raise TimedOut(f"the sounder on {self.sut.name} was not at work within {_START_S:g} s")
            self.clock.own.sleep(_POLL_S)
        return int(printed)

    def _sound(self, port: int) -> Sounding:
        answer = json.loads(self._ask("ask", port, _ROUND_TRIPS))
        exchanges = [Exchange(*(moment * _NS for moment in each)) for each in answer["exchanges"]]
        if not exchanges:
            raise RunFailed(
                f"{self.client.name} gets no answer by UDP from {self.addresses[self.sut.name]} on {self.sut.name}",
                hint="let the measured network carry all ports between the two hosts",
            )
        trips = [each.round_trip_s for each in exchanges]
        offset = offset_of(exchanges)
        # The client asks, so the offset is the SUT's clock less the client's: turned round.
        clocks = Offset(-offset.offset_s, offset.bound_s, offset.at_s + offset.offset_s)
        trip = RoundTrip(min(trips), statistics.median(trips), len(exchanges), answer["lost"])
        return Sounding(clocks, answer["own_ahead_ns"] * _NS, trip)

    def _fill(self, port: int) -> Throughput:
        answer = json.loads(self._ask("fill", port, _FILL_S))
        return Throughput(answer["to_bytes_per_s"], answer["from_bytes_per_s"])

    def _ask(self, what: str, port: int, how_much: float) -> bytes:
        return self._python(self.client, what, self.addresses[self.sut.name], str(port), f"{how_much:g}")

    def _python(self, host: Host, *words: str) -> bytes:
        argv = ["python3", "-I", "-S", "-", *words]
        return host.run(argv, timeout_s=_CALL_S, stdin=SOUNDER.read_bytes()).stdout


def on_sut_clock(between: Between, client_s: float) -> float:
    """A moment of the client's host's CLOCK_MONOTONIC on that of the SUT's, as known before the run."""
    return client_s - between.before.clocks.offset_s


def client_word_ahead_s(between: Between) -> float:
    """What the client's wall clock is ahead of the SUT's host's CLOCK_MONOTONIC."""
    return between.before.client_ahead_s + between.before.clocks.offset_s


def clock_of(own: Clock) -> SiteClock:
    """One that agrees with our own until it is set."""
    return SiteClock(own)
