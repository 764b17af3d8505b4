"""What lies between the two hosts of a site: clocks, round trip, throughput, routes, offloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from tare.deployments.directories import remove_tree
from tare.doctor import Line, cannot, ok, warning
from tare.errors import TareError
from tare.run.between.clocks import SiteClock
from tare.run.between.sounding import Between, RoundTrip, Throughput, Wire
from tare.run.between.wire import Side
from tare.run.clock import SystemClock
from tare.sites import Host
from tare.sites.connected import ConnectedSite
from tare.sites.ledger import Kind
from tare.sites.reading import answer

_LEAST_MTU = 1500
_LOOSE_CLOCK_S = 0.001
"""A bound that windows of a second do not feel, and latencies seen from both sides would."""
_MOST_LOST = 0.01
_QUICK_S = 30.0
_OFFLOADS = {
    "tcp-segmentation-offload": "TSO",
    "generic-segmentation-offload": "GSO",
    "generic-receive-offload": "GRO",
    "large-receive-offload": "LRO",
}
"""As ethtool(8) names them with -k."""


def sounded(found: ConnectedSite) -> tuple[Line, ...]:
    """Sound the wire between SUT and client, and say what it is like."""
    site = found.site
    ledgers = dict.fromkeys(found.homes, found.ledger)
    wire = Wire(site.sut, site.client, site.addresses, SiteClock(SystemClock()), ledgers)
    room = f"{found.homes[site.sut.name].work}/doctor"
    try:
        found.ledger.note(Kind.PATH, room, host=site.sut.name)
        site.sut.run(["mkdir", "-p", "--", room], timeout_s=_QUICK_S)
        between = wire.before(room)
    except TareError as error:
        return (cannot("wire", error.what, error.hint or "let the measured network carry all ports between them"),)
    finally:
        with suppress(TareError):
            remove_tree(site.sut, room)
            found.ledger.forget(Kind.PATH, room, host=site.sut.name)
    hosts = {"sut": site.sut, "client": site.client}
    features = {part: offloads(host, wire.devices[part].device) for part, host in hosts.items()}
    return tuple(between_lines(between, wire.devices, features))


def between_lines(
    between: Between, sides: Mapping[str, Side], features: Mapping[str, str | None]
) -> Iterator[Line]:
    """`features`: what each side says of its offloads."""
    if between.one_boot:
        yield warning(
            "kernels",
            "both hosts run on one kernel: they share CPUs, and figures from them are not of two machines",
            "use two machines for figures between two machines",
        )
    yield _clocks(between)
    yield _round_trip(between.before.round_trip)
    if between.throughput is not None:
        yield _throughput(between.throughput)
    for part, name in (("sut", between.sut), ("client", between.client)):
        yield _route(name, between.addresses[name], sides[part])
        yield ok(f"offloads of {name}", features[part] or "cannot be read: ethtool is not there")
    mtus = {sides[part].mtu for part in ("sut", "client")} - {None}
    if len(mtus) > 1:
        yield warning(
            "MTU", f"{' and '.join(map(str, sorted(filter(None, mtus))))}", "give both interfaces the same"
        )


def _clocks(between: Between) -> Line:
    clocks = between.before.clocks
    found = (
        f"known to ±{1e6 * clocks.bound_s:.0f} µs between the hosts, ±{1e6 * between.tare_bound_s:.0f} µs to tare"
    )
    if clocks.bound_s > _LOOSE_CLOCK_S:
        return warning("clocks", found, "use a network with shorter round trips")
    return ok("clocks", found)


def _round_trip(trip: RoundTrip) -> Line:
    found = (
        f"{1e6 * trip.least_s:.0f} µs at least, {1e6 * trip.median_s:.0f} µs in the median of {trip.sent}, by UDP"
    )
    if trip.lost > _MOST_LOST * (trip.sent + trip.lost):
        return warning("round trip", f"{found}; {trip.lost} lost", "look for drops: ip -s link, ethtool -S")
    return ok("round trip", found)


def _throughput(found: Throughput) -> Line:
    to_sut, to_client = (8e-6 * rate for rate in (found.to_sut, found.to_client))
    return ok(
        "throughput", f"{to_sut:.0f} Mbit/s to the SUT, {to_client:.0f} Mbit/s to the client, one TCP connection"
    )


def _route(name: str, address: str, side: Side) -> Line:
    title = f"route of {name}"
    if side.device is None:
        return cannot(
            title, f"from {address} there is no route to the other host", "give both an `address` on one network"
        )
    parts = [
        side.device, f"MTU {side.mtu}" if side.mtu else "", f"{side.speed_mbit} Mbit/s" if side.speed_mbit else "",
        f"qdisc {side.qdisc}" if side.qdisc else "", f"past {side.gateway}" if side.gateway else "",
    ]  # fmt: skip
    found = ", ".join(part for part in parts if part)
    if side.source is not None and side.source != address:
        return warning(
            title,
            f"{found}; it speaks from {side.source}, not from its address {address}",
            "give the host the `address` of the measured interface",
        )
    if side.gateway is not None:
        return warning(title, found, "there is a router between them: its load is part of every figure")
    if side.mtu is not None and side.mtu < _LEAST_MTU:
        return warning(title, found, "a tunnel? its cost is part of every figure")
    return ok(title, found)


def offloads(host: Host, device: str | None) -> str | None:
    """Which of an interface's offloads are on; `None` where nothing tells."""
    if device is None:
        return None
    lines = (line.strip().partition(": ") for line in answer(host, ["ethtool", "-k", device]).splitlines())
    known = {_OFFLOADS[name]: value.split()[0] for name, _, value in lines if name in _OFFLOADS and value}
    return ", ".join(f"{name} {value}" for name, value in known.items()) or None
