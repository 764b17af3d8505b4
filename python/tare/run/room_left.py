"""Whether the servers had room left for their data: a client that fails by a full disk seldom says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tare.errors import RunFailed, TareError
from tare.run.bench import Bench
from tare.run.server import Server
from tare.run.sut import Sut

_LITTLE_BYTES = 64 << 20
"""Two of Cassandra's commit log segments; other servers extend their files by less."""
_MIB = 1 << 20
_ASK, _ASK_S = ("stat", "-f", "-c", "%a %b %S"), 5.0


@contextmanager
def telling_of_full_disks(bench: Bench, sut: Sut | None) -> Iterator[None]:
    """Add to the reason of what fails within how much room its data has left, where that is little."""
    try:
        yield
    except RunFailed as error:
        servers = [] if sut is None else sut.servers
        told = [little_room(server, bench.housed(server.node).path) for server in servers]
        if not any(told):
            raise
        raise RunFailed("; ".join((error.what, *filter(None, told))), hint=error.hint) from error


def little_room(server: Server, path: str) -> str | None:
    """In words how little the file system of its data has left; `None` where that is enough, or cannot be told.

    Asked from inside, by coreutils or busybox, as a virtual machine's disk is seen from nowhere else; of a server
    that has ended, at the data's path on its host.
    """
    try:
        if server.lives:
            done = server.inside((*_ASK, server.plan.data_dir), _ASK_S, b"")
        else:
            done = server.host.run((*_ASK, path), timeout_s=_ASK_S)
        free, size, block = (int(word) for word in done.text.split())
    except (TareError, ValueError):
        return None
    if free * block >= _LITTLE_BYTES:
        return None
    of = f"{server.node.name}'s data" if server.node.part else "its data"
    return f"the file system of {of} has {free * block // _MIB} of {size * block // _MIB} MiB left"
