"""A free port on a host, found without opening one."""

from __future__ import annotations

from tare.errors import RunFailed
from tare.sites import Host

FIRST, LAST = 20000, 32000
"""Below ip_local_port_range as Linux sets it (32768-60999), so that no outgoing connection is in the way."""

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def free_port(host: Host, token: str) -> int:
    """A port that no socket of the host uses; where to begin the search is taken from `token` (hex).

    Two stores begin at different places, so two runs that search at the same moment do not meet.
    """
    taken = used_ports(host)
    count = LAST - FIRST
    start = int(token, 16) % count
    for step in range(count):
        port = FIRST + (start + step) % count
        if port not in taken:
            return port
    raise RunFailed(f"no port between {FIRST} and {LAST} is free on {host.name}")


def used_ports(host: Host) -> frozenset[int]:
    """Local ports of all TCP sockets: column 2 of /proc/net/tcp (proc_net(5))."""
    lines = [line for table in _TABLES for line in (host.read(table) or b"").splitlines()[1:]]
    return frozenset(int(line.split()[1].rpartition(b":")[2], 16) for line in lines)
