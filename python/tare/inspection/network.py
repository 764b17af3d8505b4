"""Facts of the network that a server is in: its namespace, settings, ports, names, and what carries its traffic."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

from tare.deployments.network.path import members, namespace, proxies
from tare.deployments.network.sockets import connections, socket_inodes
from tare.inspection.readings import NEEDS_ROOT, Readings
from tare.inspection.subject import Subject
from tare.sites import Host
from tare.sites.engines import ROOTLESS
from tare.sites.reading import answer, as_int, text
from tare.traps.predicate import NONE

SETTINGS = (
    "core/somaxconn", "ipv4/tcp_rmem", "ipv4/tcp_wmem", "ipv4/tcp_congestion_control", "ipv4/tcp_max_syn_backlog",
    "ipv4/ip_local_port_range", "ipv4/tcp_keepalive_time", "ipv4/tcp_fin_timeout", "ipv4/tcp_tw_reuse",
    "ipv4/tcp_slow_start_after_idle",
)  # fmt: skip
"""Settings below /proc/sys/net that belong to a network namespace and affect servers."""
_LISTENING = "0A"
_OF_ANOTHER = ("container:", "ns:")
"""How engines call the namespace of another container, or one of that path."""
_LOOPBACKS = ("127.0.0.1", "::1")
_NDOTS = re.compile(r"\bndots:(\d+)")
_CALL_S = 10.0


def read_network(host: Host, subject: Subject, facts: Readings) -> None:
    """Read everything about the network."""
    pid = subject.pid
    mine, hosts = namespace(host, pid), namespace(host, 1) or namespace(host, "self")
    own, where = (None if not mine or not hosts else mine != hosts), f"/proc/{pid}/ns/net"
    mode = str((subject.attrs.get("HostConfig") or {}).get("NetworkMode") or "")
    if own is None and mode and not mode.startswith(_OF_ANOTHER):
        own, where = mode != "host", f"{subject.engine} inspect: NetworkMode"
    facts.put("net.own_namespace", own, where)
    _settings(host, pid, facts, own=own)
    _interfaces(host, subject, facts, own=own)
    _names(host, pid, facts)
    facts.put("net.listen_overflows", listen_overflows(host, pid), f"/proc/{pid}/net/netstat")
    _path(host, subject, facts, own=own)


def _settings(host: Host, pid: int, facts: Readings, *, own: bool | None) -> None:
    outside = {name: _words(text(host, f"/proc/sys/net/{name}")) for name in SETTINGS}
    facts.put("net.host_somaxconn", as_int(outside["core/somaxconn"]), "/proc/sys/net/core/somaxconn")
    inside = settings_inside(host, pid) if own else outside if own is False else {}
    where = f"/proc/sys/net in the namespace of process {pid}"
    facts.put("net.somaxconn", as_int(inside.get("core/somaxconn")), f"{where}: core/somaxconn")
    unlike = [name for name in SETTINGS if name in inside and None not in (inside[name], outside[name])
              and inside[name] != outside[name]]  # fmt: skip
    known = tuple(f"{name.partition('/')[2]} {inside[name]} (host: {outside[name]})" for name in unlike)
    facts.put("net.unlike_host", None if not inside else known or NONE, where)


def settings_inside(host: Host, pid: int) -> Mapping[str, str | None]:
    """Settings in the network namespace of a process, which only a program in it can read; empty without root."""
    files = [f"/proc/sys/net/{name}" for name in SETTINGS]
    shown = answer(host, ["nsenter", f"--net=/proc/{pid}/ns/net", "--", "grep", "-H", "", *files])
    lines = (line.partition(":") for line in shown.splitlines())
    return {name.removeprefix("/proc/sys/net/"): _words(value) for name, _, value in lines}


def _words(value: str | None) -> str | None:
    return None if value is None else " ".join(value.split())


def _interfaces(host: Host, subject: Subject, facts: Readings, *, own: bool | None) -> None:
    pid = subject.pid
    way = _default_route(text(host, "/proc/net/route") or "")
    uplink = None if way is None else as_int(text(host, f"/sys/class/net/{way}/mtu"))
    facts.put("net.uplink_mtu", uplink, f"/sys/class/net/{way}/mtu", "the host has no default route")
    routes = text(host, f"/proc/{pid}/net/route")
    inner = _default_route(routes or "")
    folder = f"/proc/{pid}/root/sys/class/net/{inner}"
    if own and subject.engine == ROOTLESS:
        facts.put("net.mtu", NONE, f"{ROOTLESS}: a program reads and writes its packets")
    elif own and routes is None:
        facts.put("net.mtu", None, f"/proc/{pid}/net/route")
    elif own is False or (own and inner is None):
        facts.put("net.mtu", NONE, f"/proc/{pid}/net/route")
    elif (peer := text(host, f"{folder}/iflink")) is not None and peer == text(host, f"{folder}/ifindex"):
        facts.put("net.mtu", NONE, f"{folder}: a program reads and writes its packets")
    else:
        facts.put("net.mtu", as_int(text(host, f"{folder}/mtu")), f"{folder}/mtu")


def _default_route(table: str) -> str | None:
    rows = (line.split() for line in table.splitlines()[1:])
    return next((row[0] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"), None)


def _names(host: Host, pid: int, facts: Readings) -> None:
    etc = f"/proc/{pid}/root/etc"
    hosts = text(host, f"{etc}/hosts")
    rows = (line.partition("#")[0].split() for line in (hosts or "").splitlines())
    first = next((row[0] for row in rows if "localhost" in row[1:]), NONE)
    facts.put("net.localhost_first", None if hosts is None else first, f"{etc}/hosts")
    resolvers = text(host, f"{etc}/resolv.conf")
    ndots = _NDOTS.search(resolvers or "")
    facts.put("net.ndots", None if resolvers is None else int(ndots[1]) if ndots else 1, f"{etc}/resolv.conf")
    held = socket_inodes(host, [pid])
    table = text(host, f"/proc/{pid}/net/tcp6")
    rows = (line.split() for line in (table or "").splitlines()[1:])
    listens = any(len(row) > 9 and row[3] == _LISTENING and as_int(row[9]) in held for row in rows)
    clients = _loopback_clients(host, pid, socket_inodes(host, members(host, pid)))
    facts.put("net.loopback_clients", clients, f"/proc/{pid}/net/tcp and its open files")
    facts.put("net.listens_ipv6", None if table is None or not held else listens, f"/proc/{pid}/net/tcp6")


def listen_overflows(host: Host, pid: int) -> int | None:
    """Connections dropped in the namespace of a process because a listen queue was full, since it was made."""
    lines = (text(host, f"/proc/{pid}/net/netstat") or "").splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        row = dict(zip(names.split(), values.split(), strict=False))
        if "ListenOverflows" in row:
            return as_int(row["ListenOverflows"])
    return None


def _loopback_clients(host: Host, pid: int, held: Collection[int]) -> int | None:
    """Connections of the server by loopback; one whose other end is in the same container counts once."""
    if not held:
        return None
    own = [each for each in connections(host, pid) if each.inode in held]
    near = [each for each in own if ipaddress.ip_address(each.remote.address).is_loopback]
    return len({frozenset((each.local, each.remote)) for each in near})


def _path(host: Host, subject: Subject, facts: Readings, *, own: bool | None) -> None:
    """What carries the ports: a program if it holds connections or serves 127.0.0.1, else the kernel's rules."""
    where = "the engine's ports, and the programs that hold their connections"
    if own is False:
        facts.put("net.path", "host", f"/proc/{subject.pid}/ns/net")
        return
    if own is None or (subject.placed != "process" and not subject.attrs):
        facts.put("net.path", None, where, NEEDS_ROOT if own is None else subject.unasked or NEEDS_ROOT)
        return
    settings = subject.attrs.get("NetworkSettings") or {}
    published = [each for ports in (settings.get("Ports") or {}).values() for each in ports or ()]
    if not published:
        facts.put("net.path", NONE, where)
        return
    networks = (settings.get("Networks") or {}).values()
    addresses = {each.get("IPAddress") for each in (*networks, settings)} - {None, ""}
    carrying = [
        (each.name, each.process.pid, behind)
        for each in proxies(host, (), connections(host, subject.pid))
        if (behind := sum(one.remote.address in addresses for one in (*each.connections, *each.inside)))
        or (addresses & _served(host, each.process.pid) and _on_loopback(published))
    ]
    if carrying:
        name, pid, held = max(carrying, key=lambda each: each[2])
        facts.put("net.path", name, f"process {pid}: {held} connections to this container now")
    else:
        seen = text(host, f"/proc/{subject.pid}/net/tcp") is not None
        facts.put("net.path", _of_user(subject) or ("dnat" if seen else None), where)


def _of_user(subject: Subject) -> str | None:
    """What carries the ports of a rootless container, whose engine may make no rules."""
    mode = str((subject.attrs.get("HostConfig") or {}).get("NetworkMode") or "")
    if subject.engine != ROOTLESS:
        return None
    if mode.startswith("pasta"):
        return "pasta"
    return "slirp4netns" if "port_handler=slirp4netns" in mode else "rootlessport"


def _on_loopback(published: list[Mapping[str, Any]]) -> bool:
    return any(each.get("HostIp") in _LOOPBACKS for each in published)


def _served(host: Host, pid: int) -> set[str]:
    """Address of the container that a docker-proxy serves, by its command line."""
    words = (text(host, f"/proc/{pid}/cmdline") or "").split("\0")
    return {after for word, after in pairwise(words) if word == "-container-ip"}
