"""A free port on a host, found without opening one."""

from __future__ import annotations

from itertools import islice

from tare.errors import RunFailed
from tare.sites import Host

FIRST, LAST = 20000, 32000
"""Below ip_local_port_range as Linux sets it (32768-60999), so that no outgoing connection is in the way."""

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def free_ports(host: Host, token: str, count: int = 1) -> tuple[int, ...]:
    """Ports that no socket of the host uses; where to begin the search is taken from `token` (hex).

    Two stores begin at different places, so two runs that search at the same moment do not meet.
    """
    taken = used_ports(host)
    places = LAST - FIRST
    start = int(token, 16) % places
    every = (FIRST + (start + step) % places for step in range(places))
    found = tuple(islice((port for port in every if port not in taken), count))
    if len(found) < count:
        raise RunFailed(f"not {count} of the ports between {FIRST} and {LAST} are free on {host.name}")
    return found


def used_ports(host: Host) -> frozenset[int]:
    """Local ports of all TCP sockets: column 2 of /proc/net/tcp (proc_net(5))."""
    lines = [line for table in _TABLES for line in (host.read(table) or b"").splitlines()[1:]]
    return frozenset(int(line.split()[1].rpartition(b":")[2], 16) for line in lines)
