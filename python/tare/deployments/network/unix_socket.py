"""The connections between a client and a server at a Unix socket, read from /proc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tare.deployments import Endpoint, Instance
from tare.deployments.network.path import members, namespace
from tare.deployments.network.sockets import socket_inodes
from tare.record.network_path import Hop, NetworkPath
from tare.sites import Host

_CONNECTED = "03"
"""SS_CONNECTED of include/uapi/linux/net.h."""


@dataclass(frozen=True)
class UnixSocket:
    """One end of a connection. `path`: of the server's socket at the server's end, empty at the client's."""

    inode: int
    path: str


def parse_unix(text: str) -> tuple[UnixSocket, ...]:
    """Connected sockets of /proc/PID/net/unix (proc_pid_net(5)). One that is not yet accepted has inode 0."""
    rows = (line.split(maxsplit=7) for line in text.splitlines()[1:])
    return tuple(
        UnixSocket(int(row[6]), row[7] if len(row) > 7 else "")
        for row in rows
        if len(row) > 6 and row[5] == _CONNECTED
    )


def observe_socket(host: Host, client: Instance, server: Instance, path: str) -> NetworkPath | None:
    """Read the path of a client's connections to a server's socket at `path`; `None` while there is none.

    The kernel lists the server's end by the path that the server has bound, which may be another server's too. So
    an end counts if the server holds it, and at most as many as the client holds ends of connections.
    """
    inside, outside = namespace(host, server.process.pid), namespace(host, client.process.pid)
    listed = parse_unix((host.read(f"/proc/{client.process.pid}/net/unix") or b"").decode(errors="replace"))
    if not inside or not outside or not listed:
        return None
    held = socket_inodes(host, [*members(host, server.process.pid), *_children(host, server.process.pid)])
    own = socket_inodes(host, members(host, client.process.pid))
    accepted = [one for one in listed if one.path == path and one.inode in held]
    mine = [one for one in listed if not one.path and one.inode in own and one.inode not in held]
    count = min(len(accepted), len(mine))
    if count == 0:
        return None
    return NetworkPath(Hop.SOCKET, outside, inside, Endpoint(path, 0), None, None, count)


def _children(host: Host, pid: int) -> Sequence[int]:
    """Processes that a server has forked, one for each connection (PostgreSQL), where no group holds them alone."""
    listed = (host.read(f"/proc/{pid}/task/{pid}/children") or b"").split()
    return [int(each) for each in listed]
