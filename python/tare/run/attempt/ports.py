"""A free port on a host, found without opening one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tare.errors import RunFailed
from tare.sites import Host
from tare.sites.read_ahead import fetched

FIRST, LAST = 20000, 32000
"""Below ip_local_port_range as Linux sets it (32768-60999), so that no outgoing connection is in the way."""

_TABLES = ("net/tcp", "net/tcp6")
_LISTENING = b"0A"
"""TCP_LISTEN of include/net/tcp_states.h."""
_COUNTS = ("net/sockstat", "net/sockstat6")
_COUNTED = (b"TCP:", b"TCP6:")
_TRUSTED = 10
"""How often in turn an unchanged count is believed: one socket may have come as another went."""


def free_ports(host: Host, token: str, count: int = 1, others: Sequence[Host] = ()) -> tuple[int, ...]:
    """Ports that no socket of the host uses, nor of `others`; where the search begins is taken from `token` (hex).

    Two stores begin at different places, so two runs that search at the same moment do not meet.
    """
    taken = frozenset[int]().union(*(used_ports(each) for each in (host, *others)))
    places = LAST - FIRST
    start = int(token, 16) % places
    every = (FIRST + (start + step) % places for step in range(places))
    free = tuple(islice((port for port in every if port not in taken), count))
    if len(free) < count:
        on = " and ".join(each.name for each in (host, *others))
        raise RunFailed(f"fewer than {count} ports between {FIRST} and {LAST} are free on {on}")
    return free


def used_ports(host: Host) -> frozenset[int]:
    """Local ports of all TCP sockets: column 2 of /proc/net/tcp (proc_net(5))."""
    return frozenset(_port(row) for row in _rows(fetched(host, _tables("/proc")), "/proc"))


def listens(host: Host, pid: int, port: int) -> bool | None:
    """Whether somebody listens on a TCP port in a process's network namespace; `None` where that cannot be seen."""
    seen = fetched(host, _tables(f"/proc/{pid}"))
    if seen.read(_tables(f"/proc/{pid}")[0]) is None:
        return None
    return any(_port(row) == port and row[3] == _LISTENING for row in _rows(seen, f"/proc/{pid}"))


class Lookout:
    """Asks again and again whether somebody listens on a TCP port in a process's network namespace.

    To read the kernel's tables takes milliseconds of a CPU however few sockets there are (every bucket of a hash is
    walked), to read how many are in use microseconds: while that number stays, so does the answer.
    """

    def __init__(self, host: Host, pid: int, port: int) -> None:
        self._host, self._pid, self._port = host, pid, port
        self._counted: tuple[bytes, ...] = ()
        self._listens: bool | None = None
        self._believed = 0

    def listens(self) -> bool | None:
        """As `listens`, at most ten calls late."""
        counted = tuple(self._counts())
        if counted and counted == self._counted and self._believed < _TRUSTED:
            self._believed += 1
            return self._listens
        self._counted, self._believed = counted, 0
        self._listens = listens(self._host, self._pid, self._port)
        return self._listens

    def _counts(self) -> Iterator[bytes]:
        """Sockets in use by protocol (proc_pid_net(5)); nothing where that cannot be seen."""
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
