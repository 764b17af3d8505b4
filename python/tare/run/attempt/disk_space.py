"""Free disk space of the servers and of the run's files: who fails because a disk is full seldom says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tare.deployments.vm.guest import DiskSpace, guest_end
from tare.errors import RunFailed, TareError
from tare.run.attempt.context import RunContext
from tare.run.attempt.directory import WorkDirectory
from tare.run.attempt.server import Server, Sut
from tare.sites import Completed, Host

_LITTLE_BYTES = 64 << 20
"""Two segments of Cassandra's commit log; other servers extend their files by less."""
_MIB = 1 << 20
_ASK, _ASK_S = ("stat", "-f", "-c", "%a %b %S"), 5.0
_ASK_INSIDE_S = 30.0
"""Time limit inside a virtual machine, which may be emulated and busy."""


@contextmanager
def with_free_space(context: RunContext, sut: Sut | None) -> Iterator[None]:
    """Add the free space of the data, or else of the run's own files, to a failure inside the `with` statement.

    Only if little is left. On a full disk, a monitor or a client cannot even print why it ends.
    """
    try:
        yield
    except RunFailed as error:
        servers = [] if sut is None else sut.servers
        complaints = [shortage(server, context.data_mount_of(server.node).path) for server in servers]
        if not any(complaints):
            complaints = [_of_files(workdir) for workdir in (context.workdir, context.workdir_for_client)]
        if not any(complaints):
            raise
        told = dict.fromkeys(filter(None, complaints))
        raise RunFailed("; ".join((error.what, *told)), hint=error.hint) from error


def _of_files(workdir: WorkDirectory) -> str | None:
    space = _at(workdir.host, workdir.raw)
    if space is None or space.free_bytes >= _MIB:
        return None
    return f"the file system of the run's files on {workdir.host.name} has no space left"


def shortage(server: Server, path: str) -> str | None:
    """Describe how little space the file system of a server's data has left; `None` if enough, or unknown.

    `path`: of the data on their host. The host's file system below a virtual machine's disk may be full by itself.
    """
    of = f"{server.node.name}'s data" if server.node.part else "its data"
    for what, ask in ((f"of {of}", _of_data), (f"below the disk of {of}", _below_disk)):
        space = ask(server, path)
        if space is not None and space.free_bytes < _LITTLE_BYTES:
            return f"the file system {what} has {space.free_bytes // _MIB} of {space.size_bytes // _MIB} MiB left"
    return None


def _of_data(server: Server, path: str) -> DiskSpace | None:
    """Measure from inside by coreutils or busybox, since a virtual machine's disk is visible only there.

    For a server that has ended: the last report of its machine, or without a machine, the path on its host.
    """
    guest, data_dir = server.instance.guest, server.plan.data_dir
    if server.lives:
        seconds = _ASK_S if guest is None else _ASK_INSIDE_S
        return _space(lambda: server.inside((*_ASK, data_dir), seconds, b""))
    if guest is None:
        return _at(server.host, path)
    end = guest_end(server.host, guest.status)
    return None if end is None else end.disk_space.get(data_dir)


def _below_disk(server: Server, path: str) -> DiskSpace | None:
    return None if server.instance.guest is None else _at(server.host, path)


def _at(host: Host, path: str) -> DiskSpace | None:
    return _space(lambda: host.run((*_ASK, path), timeout_s=_ASK_S))


def _space(ask: Callable[[], Completed]) -> DiskSpace | None:
    try:
        free, size, block = (int(word) for word in ask().text.split())
    except (TareError, ValueError):
        return None
    return DiskSpace(free * block, size * block)
