"""What a program has obtained of the kernel, and the confinement and network that it finds itself in.

Read while a run is measured, so nothing here walks a program's page tables, as /proc/PID/smaps does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from tare.sites import Host
from tare.sites.reading import answer, text

_NEVER = 1 << 62
"""Control groups v1 print a number above it for no limit."""
IO_URING, LIBAIO, NEITHER = "io_uring", "libaio", "neither"
UPLINK_MTU, UPLINK_QUEUE = "MTU of the uplink", "queue of the uplink"
LOOPBACK_MTU, NAME_SERVERS = "MTU of loopback", "name servers"
UPLINK_OFFLOADS = "offloads of the uplink"
_OFFLOADS = {
    "tcp-segmentation-offload": "TSO",
    "generic-segmentation-offload": "GSO",
    "generic-receive-offload": "GRO",
    "large-receive-offload": "LRO",
}
"""Names of offloads in the output of `ethtool -k` (ethtool(8)) → short names."""


@dataclass(frozen=True)
class Interface:
    """One line of `ip -o link`: its MTU, and the discipline of its queue."""

    mtu: str | None
    queue: str | None


@dataclass(frozen=True)
class DiskAccess:
    """How a program reaches disks. `interface`: `None` if root alone may look. `links_io_uring`: `yes` or `no`."""

    interface: str | None
    links_io_uring: str | None


def disk_access(host: Host, pid: int) -> DiskAccess:
    """Asynchronous interface to disks that a program holds: a ring of io_uring, or a context of libaio.

    A ring is an open file; a context is a mapping (fs/aio.c).
    """
    if "anon_inode:[io_uring]" in host.links([f"/proc/{pid}/fd"]).values():
        return DiskAccess(IO_URING, "yes")
    maps = text(host, f"/proc/{pid}/maps")
    if maps is None:
        return DiskAccess(None, None)
    return DiskAccess(LIBAIO if "/[aio]" in maps else NEITHER, "yes" if "/liburing" in maps else "no")


def security_label(raw: str | None) -> str | None:
    """Return a label of AppArmor, or user, role and type of SELinux: its level is unique to a container."""
    label = (raw or "").rstrip("\0\n")
    parts = label.split(":")
    return ":".join(parts[:3]) if len(parts) > 3 else label or None


def some(kib: str | None) -> str | None:
    """Whether a line of /proc/PID/status counts any memory: `2048 kB` → `some`."""
    amount = (kib or "").removesuffix(" kB").strip()
    return None if not amount.isdecimal() else "none" if int(amount) == 0 else "some"


def hugetlb_limit(v1: str | None, v2: str | None) -> str | None:
    """Limit on huge pages from hugetlb.2MB.limit_in_bytes or hugetlb.2MB.max."""
    limit = v1 or v2
    return "max" if limit is not None and limit.isdecimal() and int(limit) >= _NEVER else limit


def parse_links(listed: str) -> Mapping[str, Interface]:
    """Parse `ip -o link`: name → interface, the name without the index of a peer (`eth0@if5`)."""
    links = {}
    for line in listed.splitlines():
        _, _, rest = line.partition(": ")
        name, _, options = rest.partition(": ")
        words = options.split()
        given = dict(pairwise(words))
        links[name.partition("@")[0]] = Interface(given.get("mtu"), given.get("qdisc"))
    return links


def uplink_of(routes: str) -> str | None:
    """Interface of the default route in /proc/PID/net/route."""
    rows = (line.split() for line in routes.splitlines()[1:])
    return next((row[0] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"), None)


def parse_offloads(listed: str) -> str | None:
    """Parse `ethtool -k` into `TSO on, GSO on, GRO off`; `None` if it lists none of these."""
    lines = (line.strip().partition(": ") for line in listed.splitlines())
    known = {_OFFLOADS[name]: value.split()[0] for name, _, value in lines if name in _OFFLOADS and value}
    return ", ".join(f"{name} {value}" for name, value in known.items()) or None


def network_of(host: Host, pid: int) -> Mapping[str, str]:
    """MTUs, queue and offloads in the network namespace of a process, and its name servers; what is known.

    Only the interface of the default route counts, beside loopback: other containers' come and go.
    """
    inside = ["nsenter", "-t", str(pid), "-n", "--"]
    links = parse_links(answer(host, [*inside, "ip", "-o", "link"]))
    name = uplink_of(text(host, f"/proc/{pid}/net/route") or "") or ""
    uplink = links.get(name)
    resolvers = text(host, f"/proc/{pid}/root/etc/resolv.conf")
    lines = (line.split() for line in (resolvers or "").splitlines())
    asked = " ".join(line[1] for line in lines if len(line) > 1 and line[0] == "nameserver")
    seen = {
        LOOPBACK_MTU: links["lo"].mtu if "lo" in links else None,
        UPLINK_MTU: uplink.mtu if uplink else None,
        UPLINK_QUEUE: uplink.queue if uplink else None,
        UPLINK_OFFLOADS: parse_offloads(answer(host, [*inside, "ethtool", "-k", name])) if uplink else None,
        NAME_SERVERS: None if resolvers is None else asked or "none",
    }
    return {name: value for name, value in seen.items() if value is not None}
