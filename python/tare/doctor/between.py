"""Checks between the hosts of a site: clocks, round trip, throughput, routes, offloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tare.deployments.obtained import parse_offloads
from tare.doctor import Line, Verdict, cannot, ok, warning
from tare.errors import TareError
from tare.record.between import Between, Link, RoundTrip, Route, Throughput
from tare.run.between.clocks import SiteClock
from tare.run.between.sounding import Wire
from tare.run.clock import SystemClock
from tare.sites import Host
from tare.sites.connected import ConnectedSite
from tare.sites.reading import answer

_LEAST_MTU = 1500
_LOOSE_CLOCK_S = 0.001
"""Bound that does not matter for windows of a second, but would for latencies seen from both sides."""
_MOST_LOST = 0.01
_BY_PROGRAM = Path(__file__).with_name("offloads.py")


def wire_lines(found: ConnectedSite) -> tuple[Line, ...]:
    """Sound the wires between client and SUT, and among the hosts of a cluster, and describe them."""
    site = found.site
    ledgers = dict.fromkeys(found.homes, found.ledger)
    works = {name: str(home.work) for name, home in found.homes.items()}
    wire = Wire(site.sut, site.client, site.addresses, SiteClock(SystemClock()), ledgers, works, site.nodes)
    try:
        between = wire.before()
    except TareError as error:
        return (cannot("wire", error.what, error.hint or "open all ports of the measured network between them"),)
    hosts = {"client": site.client, **{wire.side_of_host(host): host for host in site.sut_hosts}}
    features = {part: offloads(host, wire.devices[part].device) for part, host in hosts.items()}
    return tuple(between_lines(between, wire.devices, features))


def between_lines(
    between: Between, sides: Mapping[str, Route], features: Mapping[str, str | None]
) -> Iterator[Line]:
    """Lines on the wires between hosts. `features`: offloads of each side, as text."""
    if between.one_boot:
        hosts, machines = ("hosts", "separate machines") if between.links else ("both hosts", "two machines")
        yield warning(
            "kernels",
            f"{hosts} run on one kernel: they share CPUs, so their figures do not represent {machines}",
            "use two machines for figures between two machines",
        )
    yield _clocks(between)
    yield _round_trip(between.before.round_trip)
    if between.throughput is not None:
        yield _throughput(between.throughput)
    for link in between.links:
        yield from _link(link)
    for part, name in _named(between).items():
        yield _route(name, between.addresses[name], sides[part])
        yield ok(f"offloads of {name}", features[part] or "cannot be read: neither ethtool nor python3 reads them")
    mtus = {side.mtu for side in sides.values()} - {None}
    if len(mtus) > 1:
        yield warning(
            "MTU", f"{' and '.join(map(str, sorted(filter(None, mtus))))}", "give all interfaces the same"
        )


def _named(between: Between) -> Mapping[str, str]:
    """Route, or further node → its host; the client's host is last.

    A further node is the asking end of the link to the first.
    """
    others = [link.asks for link in between.links if link.answers == between.sut]
    nodes = {f"sut-{number}": name for number, name in enumerate(others, 2)}
    return {"sut": between.sut, **nodes, "client": between.client}


def _link(link: Link) -> Iterator[Line]:
    """Lines on a link between two more hosts of a cluster's site; if there is no route, a line says so."""
    name, clocks = f"{link.asks} to {link.answers}", link.before.clocks
    if link.route.device is None:
        yield cannot(f"route from {name}", "there is none", "give both an `address` on one network")
    trip, rates = _round_trip(link.before.round_trip), link.throughput
    there, back = 8e-6 * rates.to_sut, 8e-6 * rates.to_client
    shown = f"{trip.found}; {there:.0f} Mbit/s there, {back:.0f} Mbit/s back; clocks ±{1e6 * clocks.bound_s:.0f} µs"
    if trip.verdict is not Verdict.OK:
        yield warning(name, shown, trip.advice or "")
    elif clocks.bound_s > _LOOSE_CLOCK_S:
        yield warning(name, shown, "use a network with shorter round trips")
    else:
        yield ok(name, shown)


def _clocks(between: Between) -> Line:
    clocks = between.before.clocks
    shown = (
        f"known to ±{1e6 * clocks.bound_s:.0f} µs between the hosts, ±{1e6 * between.tare_bound_s:.0f} µs to tare"
    )
    if clocks.bound_s > _LOOSE_CLOCK_S:
        return warning("clocks", shown, "use a network with shorter round trips")
    return ok("clocks", shown)


def _round_trip(trip: RoundTrip) -> Line:
    shown = (
        f"{1e6 * trip.least_s:.0f} µs at least, {1e6 * trip.median_s:.0f} µs in the median of {trip.sent}, by UDP"
    )
    if trip.lost > _MOST_LOST * (trip.sent + trip.lost):
        return warning("round trip", f"{shown}; {trip.lost} lost", "look for drops: ip -s link, ethtool -S")
    return ok("round trip", shown)


def _throughput(throughput: Throughput) -> Line:
    to_sut, to_client = (8e-6 * rate for rate in (throughput.to_sut, throughput.to_client))
    return ok(
        "throughput", f"{to_sut:.0f} Mbit/s to the SUT, {to_client:.0f} Mbit/s to the client, one TCP connection"
    )


def _route(name: str, address: str, side: Route) -> Line:
    title = f"route of {name}"
    if side.device is None:
        return cannot(
            title, f"from {address} there is no route to the other host", "give both an `address` on one network"
        )
    parts = [
        side.device, f"MTU {side.mtu}" if side.mtu else "", f"{side.speed_mbit} Mbit/s" if side.speed_mbit else "",
        f"qdisc {side.qdisc}" if side.qdisc else "", f"past {side.gateway}" if side.gateway else "",
    ]  # fmt: skip
    shown = ", ".join(part for part in parts if part)
    if side.source is not None and side.source != address:
        return warning(
            title,
            f"{shown}; it speaks from {side.source}, not from its address {address}",
            "give the host the `address` of the measured interface",
        )
    if side.gateway is not None:
        return warning(title, shown, "there is a router between them: its load is part of every figure")
    if side.mtu is not None and side.mtu < _LEAST_MTU:
        return warning(title, shown, "a tunnel? its cost is part of every figure")
    return ok(title, shown)


def offloads(host: Host, device: str | None) -> str | None:
    """State of an interface's offloads; `None` if it is unknown."""
    if device is None:
        return None
    by_ethtool = answer(host, ["ethtool", "-k", device])
    text = by_ethtool or answer(host, ["python3", "-I", "-S", "-c", _BY_PROGRAM.read_text(), device])
    return parse_offloads(text)
