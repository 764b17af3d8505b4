"""The network interfaces that carry a run between two hosts, with their counters and the kernel's."""

from __future__ import annotations

from collections.abc import Mapping

from tare.record.between import Route
from tare.sites import Host
from tare.sites.read_ahead import fetched
from tare.sites.reading import answer, as_int, number, text

_COUNTERS = (
    "rx_bytes",
    "tx_bytes",
    "rx_packets",
    "tx_packets",
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
)
"""Files below /sys/class/net/DEVICE/statistics (Documentation/ABI/testing/sysfs-class-net-statistics)."""
_TCP = {"OutSegs": "tcp_segments_sent", "RetransSegs": "tcp_segments_retransmitted"}
"""Counters of RFC 4022 in /proc/PID/net/snmp (proc_pid_net(5))."""


def route_to(host: Host, address: str) -> Route:
    """Return the kernel's route to an address."""
    words = answer(host, ["ip", "-o", "route", "get", address]).split()
    fields = {word: words[place + 1] for place, word in enumerate(words[:-1]) if word in ("dev", "src", "via")}
    device = fields.get("dev")
    if device is None:
        return Route(None, fields.get("src"), fields.get("via"), None, None, None)
    below = f"/sys/class/net/{device}"
    speed = number(host, f"{below}/speed")
    link = answer(host, ["ip", "-o", "link", "show", "dev", device]).split()
    qdisc = link[link.index("qdisc") + 1] if "qdisc" in link[:-1] else None
    known = None if speed is None or speed < 0 else speed  # -1: unknown
    return Route(device, fields.get("src"), fields.get("via"), number(host, f"{below}/mtu"), known, qdisc)


def counters(host: Host, device: str | None, pid: int | None) -> Mapping[str, int | None]:
    """Read the counters of the interface, and TCP's in the network namespace of `pid` (`None`: the host's)."""
    snmp = "/proc/net/snmp" if pid is None else f"/proc/{pid}/net/snmp"
    files = {} if device is None else {name: f"/sys/class/net/{device}/statistics/{name}" for name in _COUNTERS}
    seen = fetched(host, [snmp, *files.values()])
    counts = {name: number(seen, files[name]) if name in files else None for name in _COUNTERS}
    return {**counts, **tcp_counters(text(seen, snmp) or "")}


def tcp_counters(snmp: str) -> Mapping[str, int | None]:
    """Parse the two lines of TCP in /proc/net/snmp: names, then values."""
    lines = [line.split() for line in snmp.splitlines() if line.startswith("Tcp: ")]
    fields = dict(zip(lines[0], lines[1], strict=False)) if len(lines) == 2 else {}
    return {name: as_int(fields.get(word)) for word, name in _TCP.items()}


def growth(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> Mapping[str, int | None]:
    """Return the growth of each counter; `None` if it could not be read or was reset."""
    grown: dict[str, int | None] = {}
    for name, later in after.items():
        earlier = before.get(name)
        grown[name] = None if later is None or earlier is None or later < earlier else later - earlier
    return grown
