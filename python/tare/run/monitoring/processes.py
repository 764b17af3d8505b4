"""The processes that monitors watch: both sides, and what the engine puts between and behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from tare.deployments import CONTAINERD, POD, Instance
from tare.deployments.network.path import CARRIERS
from tare.deployments.network.sockets import listeners, socket_inodes
from tare.errors import TareError
from tare.monitors import OF_SUT, WatchedProcess
from tare.record.network_path import Hop
from tare.sites import Host, Process
from tare.sites.local import own_process
from tare.sites.process import named
from tare.study.values import OWN_ADDRESS, POD_NETWORKS, ROOTLESS_NETWORKS, NetworkKind

DAEMONS = ("dockerd", "containerd", "podman")
_PROXY = "docker-proxy"
_USERS = {name: hop.value for name, hop in CARRIERS.items() if hop is not Hop.DOCKER_PROXY}
"""Process name → name in traces, for programs that carry connections to containers without root."""
_SHIMS = ("containerd-shim", "conmon")
"""What an engine leaves as the parent of a container's first process; the kernel cuts command names at 15
letters."""
SHIM = "shim"
"""Name in traces of the parent of a SUT's container."""
ENGINE = frozenset({*DAEMONS, SHIM, "client-shim"})
"""Names in traces of what an engine keeps running for its containers, docker-proxies aside."""
_ISOLATED = (NetworkKind.BRIDGE, NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS, *OWN_ADDRESS)


def processes_on(
    host: Host, sut: Mapping[str, Instance], storages: Iterable[Process] = (), *, with_tare: bool = True
) -> tuple[WatchedProcess, ...]:
    """Return the servers by name, if any, with the processes between and behind them, and tare itself.

    `storages`: processes that serve the servers' data. `with_tare`: tare runs on this host.
    """
    try:
        running = named(host, (*DAEMONS, _PROXY, *_USERS))
    except TareError:
        running = {}  # no pgrep: the engine's processes cannot be identified
    daemons = [WatchedProcess(command, pid) for pid, command in running.items() if command in DAEMONS]
    others = (*daemons, *([WatchedProcess("tare", own_process().pid)] if with_tare else ()))
    servers = [watched for name, instance in sut.items() for watched in processes_of(host, name, instance)]
    proxies = [
        WatchedProcess("proxy", pid)
        for pid, command in running.items()
        if command == _PROXY and any(_carries(host, pid, instance) for instance in sut.values())
    ]
    carriers = [
        WatchedProcess(_USERS[running[pid]], pid)
        for pid in sorted({pid for instance in sut.values() for pid in _carriers(host, running, instance)})
    ]
    serving = (WatchedProcess("storage", process.pid, tree=True) for process in storages)
    return (*servers, *proxies, *carriers, *serving, *others)


def processes_of(host: Host, name: str, instance: Instance) -> tuple[WatchedProcess, ...]:
    """Return a started task's process, with its shim if the task is a container.

    A task without a control group of its own is watched as its process and that process's descendants.
    """
    task, pid = instance.task, instance.process.pid
    groups = (host.read(f"/proc/{pid}/cgroup") or b"").decode(errors="replace")
    in_cluster = instance.deployment == POD
    own_cgroup = in_cluster or task.cgroup_parent.rpartition("/")[2] in groups
    boxed = instance.deployment in {POD, CONTAINERD} or instance.container_id is not None
    watched = WatchedProcess(
        name,
        pid,
        own_cgroup=own_cgroup,
        own_network=boxed and task.network in (POD_NETWORKS if in_cluster else _ISOLATED),
        tree=not own_cgroup,
        container_id=instance.container_id,
    )
    shim = _shim(host, pid) if boxed else None
    return (
        (watched,)
        if shim is None
        else (watched, WatchedProcess(SHIM if re.match(OF_SUT, name) else f"{name}-shim", shim))
    )


def _carries(host: Host, pid: int, sut: Instance) -> bool:
    """Whether a docker-proxy is the SUT's, by its command line."""
    words = (host.read(f"/proc/{pid}/cmdline") or b"").decode(errors="replace").split("\0")
    options = dict(pairwise(words))
    return options.get("-container-ip") == sut.address and options.get("-container-port") == str(sut.task.port)


def _carriers(host: Host, running: Mapping[int, str], sut: Instance) -> Iterator[int]:
    """Yield the programs that hold the SUT's published port on a network without root, others' of this name not."""
    if sut.task.network not in ROOTLESS_NETWORKS or sut.published is None:
        return
    candidates = [pid for pid, command in running.items() if command in _USERS]
    held = socket_inodes(host, candidates)
    for inode in listeners(host, sut.published.port):
        if inode in held:
            yield held[inode]


def _shim(host: Host, pid: int) -> int | None:
    stat = host.read(f"/proc/{pid}/stat")
    if not stat:
        return None
    parent = int(stat[stat.rindex(b")") + 2 :].split()[1])
    command = (host.read(f"/proc/{parent}/comm") or b"").decode(errors="replace").strip()
    return parent if command in _SHIMS else None
