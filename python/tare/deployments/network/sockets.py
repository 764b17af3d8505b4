"""TCP connections and listening sockets of a network namespace and their holders, from /proc."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from tare.deployments import Endpoint
from tare.sites import Host
from tare.sites.read_ahead import fetched

_ESTABLISHED, _LISTENING = "01", "0A"
_SOCKET = re.compile(r"socket:\[(?P<inode>\d+)\]")


@dataclass(frozen=True)
class Connection:
    """One end of an established TCP connection. `inode` is 0 until the program has accepted the connection."""

    local: Endpoint
    remote: Endpoint
    inode: int
    user: int | None = field(default=None, compare=False)
    """User ID, on the host, of the owner of the socket."""


def parse_tcp(text: str) -> tuple[Connection, ...]:
    """Established connections of one table; an IPv4 address in IPv6 (::ffff:a.b.c.d) is returned as IPv4.

    The kernel hands the table out in parts, and lists a connection again when others come or go in between. The
    last row of each counts.
    """
    rows = [line.split() for line in text.splitlines()[1:]]
    listed = [
        Connection(_endpoint(row[1]), _endpoint(row[2]), int(row[9]), int(row[7]))
        for row in rows
        if len(row) > 9 and row[3] == _ESTABLISHED
    ]
    return tuple({(one.local, one.remote): one for one in listed}.values())


def listening(text: str, port: int) -> frozenset[int]:
    """Inodes of the sockets of one table that listen on a port, at whatever address."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return frozenset(
        int(row[9]) for row in rows if len(row) > 9 and row[3] == _LISTENING and _endpoint(row[1]).port == port
    )


def listeners(host: Host, port: int) -> frozenset[int]:
    """Inodes of the sockets in the host's own network namespace that listen on a port."""
    tables = [host.read(f"/proc/net/{name}") or b"" for name in ("tcp", "tcp6")]
    return frozenset(inode for table in tables for inode in listening(table.decode(), port))


def connections(host: Host, pid: int) -> tuple[Connection, ...]:
    """All established connections in the network namespace of a process."""
    files = [f"/proc/{pid}/net/{name}" for name in ("tcp", "tcp6")]
    seen = fetched(host, files)
    tables = [seen.read(file) or b"" for file in files]
    return tuple(connection for table in tables for connection in parse_tcp(table.decode()))


def socket_inodes(host: Host, pids: Sequence[int]) -> dict[int, int]:
    """Inode of each socket that the processes hold → pid of a holder."""
    holders = {f"/proc/{pid}/fd": pid for pid in pids}
    links = host.links(tuple(holders)) if holders else {}
    held = ((holders[path.rpartition("/")[0]], _SOCKET.fullmatch(target)) for path, target in links.items())
    return {int(one["inode"]): pid for pid, one in held if one}


def _endpoint(text: str) -> Endpoint:
    """Parse `0100007F:1F90` → 127.0.0.1:8080: each 32-bit word is in the machine's byte order."""
    address, _, port = text.partition(":")
    words = [bytes.fromhex(address[index : index + 8]) for index in range(0, len(address), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    parsed = ipaddress.ip_address(packed)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return Endpoint(str(parsed), int(port, 16))
