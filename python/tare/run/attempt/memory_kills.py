"""OOM kills in the server's control group: of a killed child, a client only sees a closed connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tare.deployments import Instance
from tare.deployments.cgroup.hierarchy import cgroups_of, parse_proc_cgroup
from tare.deployments.observe import file_of_group
from tare.deployments.vm.guest import GuestHost
from tare.errors import RunFailed, TareError
from tare.run.attempt.context import RunContext
from tare.run.attempt.death import OUT_OF_MEMORY, limit_of, oom_kills
from tare.run.attempt.disk_space import with_free_space
from tare.run.attempt.job import Draft
from tare.run.attempt.server import Server, Sut
from tare.sites import Host
from tare.sites.reading import as_int, table, text

_COUNTERS = ("memory.events", "memory.oom_control")
"""Files of cgroup v2 and v1; both have a line `oom_kill N` (cgroup-v2.rst; Linux 4.13 for v1)."""


@contextmanager
def explained(context: RunContext, sut: Sut | None, draft: Draft) -> Iterator[None]:
    """Count OOM kills inside the `with` statement, and name them, or a full disk, as the reason of a failure.

    A kill of the phase before may be the reason too: the server still recovers from it.
    """
    servers = [] if sut is None else sut.servers
    for server in servers:
        if server.node.name not in draft.oom_kills_before:
            draft.oom_kills_before[server.node.name] = _kills(server)
    try:
        with with_free_space(context, sut):
            yield
    except RunFailed as error:
        killed = [server for server, count in zip(servers, _count(servers, draft), strict=True) if count]
        if not killed or OUT_OF_MEMORY in error.what:
            raise
        which = f"a process of {killed[0].node.name}" if killed[0].node.part else "a process of the server"
        reason = f"the kernel killed {which}, {OUT_OF_MEMORY} ({limit_of(killed[0].instance)})"
        raise RunFailed(f"{reason}: {error.what}", hint=error.hint) from error
    _count(servers, draft)


def _count(servers: list[Server], draft: Draft) -> list[int | None]:
    """Return the kills of each server since the warm-up began; the draft gets their sum."""
    counts = []
    for server in servers:
        now, before = _kills(server), draft.oom_kills_before[server.node.name]
        counts.append(None if now is None or before is None else max(0, now - before))
    known = [count for count in counts if count is not None]
    if counts and len(known) == len(counts):
        draft.oom_kills = sum(known)
    return counts


def _kills(server: Server) -> int | None:
    """Count the processes of a server that the kernel has killed for lack of memory; `None` if it does not tell."""
    try:
        return group_oom_kills(server.host, server.instance)
    except TareError:
        return None


def group_oom_kills(host: Host, instance: Instance) -> int | None:
    """Read the counter of the control group of a task's first process; in a virtual machine, that of its kernel."""
    if instance.guest is not None:
        return oom_kills(GuestHost.of(host, instance))
    paths = parse_proc_cgroup(text(host, f"/proc/{instance.process.pid}/cgroup") or "")
    cgroups = cgroups_of(host)
    for name in _COUNTERS:
        file = file_of_group(cgroups, paths, "memory", name)
        count = as_int(table(text(host, file), " ").get("oom_kill")) if file is not None else None
        if count is not None:
            return count
    return None
