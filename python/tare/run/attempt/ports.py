"""Find free ports on a host without opening one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from itertools import islice

from tare.errors import RunFailed
from tare.sites import Host
from tare.sites.read_ahead import fetched

FIRST, LAST = 20000, 32000
"""Below ip_local_port_range as Linux sets it (32768-60999), so that outgoing connections do not collide."""

_TABLES = ("net/tcp", "net/tcp6")
_LISTENING = b"0A"
"""TCP_LISTEN of include/net/tcp_states.h."""
_COUNTS = ("net/sockstat", "net/sockstat6")
_COUNTED = (b"TCP:", b"TCP6:")
_MOST_CLAIMS = 64
"""More than the servers that one tare starts at the same time."""
_claims: dict[int, int] = {}
"""Port → descriptor of the socket that claims it, until this process ends."""
_TRUSTED = 10
"""How many times in a row an unchanged count is trusted: one socket may have come as another went."""


def free_ports(host: Host, token: str, count: int = 1, others: Sequence[Host] = ()) -> tuple[int, ...]:
    """Find ports that no socket of the host or of `others` uses.

    The search starts at a place taken from `token` (hex). A port that is found is claimed against every other tare
    on this machine, as the server opens it later.
    """
    taken = frozenset[int]().union(*(used_ports(each) for each in (host, *others)))
    places = LAST - FIRST
    start = int(token, 16) % places
    every = (FIRST + (start + step) % places for step in range(places))
    free = tuple(islice((port for port in every if port not in taken and _claim(port)), count))
    if len(free) < count:
        on = " and ".join(each.name for each in (host, *others))
        raise RunFailed(f"fewer than {count} ports between {FIRST} and {LAST} are free on {on}")
    return free


def _claim(port: int) -> bool:
    """Whether no other process has claimed a port: by an abstract socket, which goes with its process (unix(7))."""
    if port in _claims:
        return True
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0tare-port-{port}")
    except OSError:
        claim.close()
        return False
    _claims[port] = claim.detach()
    if len(_claims) > _MOST_CLAIMS:
        os.close(_claims.pop(next(iter(_claims))))
    return True


def used_ports(host: Host) -> frozenset[int]:
    """Return the local ports of all TCP sockets: column 2 of /proc/net/tcp (proc_net(5))."""
    return frozenset(_port(row) for row in _rows(fetched(host, _tables("/proc")), "/proc"))


def listens(host: Host, pid: int, port: int) -> bool | None:
    """Whether a process listens on a TCP port in the network namespace of `pid`; `None` if that cannot be seen."""
    seen = fetched(host, _tables(f"/proc/{pid}"))
    if seen.read(_tables(f"/proc/{pid}")[0]) is None:
        return None
    return any(_port(row) == port and row[3] == _LISTENING for row in _rows(seen, f"/proc/{pid}"))


class PortCheck:
    """Repeated cheap check of whether a TCP port is listened on in a process's network namespace.

    Reading the kernel's socket tables takes milliseconds of CPU however few sockets there are (every hash bucket is
    walked); reading the number of sockets takes microseconds. While that number stays, the last answer is reused.
    """

    def __init__(self, host: Host, pid: int, port: int) -> None:
        self._host, self._pid, self._port = host, pid, port
        self._counted: tuple[bytes, ...] = ()
        self._listens: bool | None = None
        self._reused = 0

    def listens(self) -> bool | None:
        """Return what `listens` does, at most ten calls late."""
        counted = tuple(self._counts())
        if counted and counted == self._counted and self._reused < _TRUSTED:
            self._reused += 1
            return self._listens
        self._counted, self._reused = counted, 0
        self._listens = listens(self._host, self._pid, self._port)
        return self._listens

    def _counts(self) -> Iterator[bytes]:
        """Yield the number of sockets in use by protocol (proc_pid_net(5)); nothing if that cannot be seen."""
        files = [f"/proc/{self._pid}/{table}" for table in _COUNTS]
        seen = fetched(self._host, files)
        for file in files:
            for line in (seen.read(file) or b"").splitlines():
                if line.startswith(_COUNTED):
                    yield b" ".join(line.split()[:3])  # TCP: inuse N


def _rows(host: Host, below: str) -> Iterator[list[bytes]]:
    for table in _tables(below):
        yield from (line.split() for line in (host.read(table) or b"").splitlines()[1:])


def _tables(below: str) -> tuple[str, ...]:
    return tuple(f"{below}/{table}" for table in _TABLES)


def _port(row: list[bytes]) -> int:
    return int(row[1].rpartition(b":")[2], 16)
