"""What only load shows: counters of a server at two moments, and what happened between them.

Sources: Documentation/admin-guide/iostats.rst (flushes), Documentation/scheduler/sched-stats.rst of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from tare.deployments.mounts import covering, parse_mountinfo
from tare.deployments.network.path import CARRIERS, members
from tare.errors import HostSilent, RunFailed
from tare.inspection.gather import data_path, log_bytes
from tare.inspection.groups import group_of, oom_kills, throttling
from tare.inspection.network import listen_overflows
from tare.inspection.readings import Readings
from tare.inspection.subject import SHIMS, Subject, parent_of
from tare.sites import Host
from tare.sites.process import TICKS_PER_S, named
from tare.sites.reading import answer, as_int, text
from tare.traps.predicate import NONE

_WITH_FLUSHES = 20
"""Columns of a line of /proc/diskstats that has them."""


@dataclass(frozen=True)
class Counters:
    """Counters at one moment; `None`: could not be read."""

    at_s: float
    periods: tuple[int, int] | None
    kills: int | None
    overflows: int | None
    ran_ns: int | None
    waited_ns: int | None
    proxy_ticks: int | None
    log: int | None
    """Bytes that the server printed."""
    conntrack_drops: int | None = None
    disk: str = ""
    """The disk under the data; empty: none is known."""
    flushes: tuple[int, int] | None = None
    """Number of its flushes, and milliseconds that they took."""


def counters(host: Host, subject: Subject) -> Counters:
    """Read all counters of a server now."""
    group = group_of(host, subject.pid)
    ran, waited = _scheduled(host, members(host, subject.pid))
    disk = disk_of_data(host, subject)
    return Counters(
        at_s=float((text(host, "/proc/uptime") or "0").split()[0]),
        periods=throttling(group)[0],
        kills=oom_kills(group)[0],
        overflows=listen_overflows(host, subject.pid),
        ran_ns=ran,
        waited_ns=waited,
        proxy_ticks=_proxy_ticks(host),
        log=printed_bytes(host, subject),
        conntrack_drops=conntrack_drops(text(host, "/proc/net/stat/nf_conntrack") or ""),
        disk=disk,
        flushes=flushes_of(text(host, "/proc/diskstats") or "", disk),
    )


def between(before: Counters, after: Counters, facts: Readings) -> None:
    """Keep what happened between two moments."""
    seconds = max(after.at_s - before.at_s, 1e-3)
    where = f"two looks, {seconds:.0f} s apart"
    share = None
    if before.periods is not None and after.periods is not None:
        periods, throttled = (b - a for a, b in zip(before.periods, after.periods, strict=True))
        share = throttled / periods if periods else 0.0
    facts.put("load.throttled_share", share, f"cpu.stat, {where}", "no such file")
    facts.put("load.oom_kills", _grown(before.kills, after.kills), f"memory events, {where}", "no such file")
    facts.put("load.listen_overflows", _grown(before.overflows, after.overflows), f"netstat, {where}")
    ran, waited = _grown(before.ran_ns, after.ran_ns), _grown(before.waited_ns, after.waited_ns)
    known = ran is not None and waited is not None
    total = (ran or 0) + (waited or 0)
    wait = (waited or 0) / total if known and total else 0.0 if known else None
    facts.put("load.run_queue_share", wait, f"schedstat of its threads, {where}", "no such file")
    ticks = _grown(before.proxy_ticks, after.proxy_ticks)
    cpus = None if ticks is None else ticks / TICKS_PER_S / seconds
    facts.put("load.proxy_cpus", cpus, f"CPU time of programs that carry ports, {where}")
    drops = _grown(before.conntrack_drops, after.conntrack_drops)
    place = "/proc/net/stat/nf_conntrack"
    facts.put("load.conntrack_drops", drops, f"{place}, {where}", "this kernel does not show it")
    _flushes(before, after, facts, where)
    log = _grown(before.log, after.log)
    place = f"what the parent of its container read, or the size of its log, {where}"
    facts.put("load.log_bytes_per_s", None if log is None else log / seconds, place, "no container prints it")


def _flushes(before: Counters, after: Counters, facts: Readings, where: str) -> None:
    mean_ms: float | str | None = None
    if before.flushes is not None and after.flushes is not None:
        count, took_ms = (b - a for a, b in zip(before.flushes, after.flushes, strict=True))
        mean_ms = took_ms / count if count > 0 else NONE
    place = f"/proc/diskstats: flushes of {after.disk or 'the disk under the data'}, {where}"
    facts.put("load.flush_ms", mean_ms, place, "no disk under the data that counts flushes")


def conntrack_drops(table: str) -> int | None:
    """Packets dropped for lack of room, of all CPUs: columns `drop` and `early_drop`, in hexadecimal."""
    head, *rows = [line.split() for line in table.splitlines()] or [[]]
    wanted = [head.index(name) for name in ("drop", "early_drop") if name in head]
    known = [int(row[at], 16) for row in rows for at in wanted if at < len(row)]
    return sum(known) if known else None


def printed_bytes(host: Host, subject: Subject) -> int | None:
    """Bytes that a container printed: its parent reads them, whatever the log driver; else its log's size."""
    pid: int | None = subject.pid
    while pid is not None and pid > 1:
        command = text(host, f"/proc/{pid}/comm") or ""
        if command.startswith(SHIMS):
            words = (text(host, f"/proc/{pid}/io") or "").split()
            return as_int(words[1]) if words[:1] == ["rchar:"] else log_bytes(host, subject)
        pid = parent_of(host, pid)
    return log_bytes(host, subject)


def disk_of_data(host: Host, subject: Subject) -> str:
    """Name of the whole disk under a server's data, through the layers of an overlay; empty if there is none."""
    path = data_path(host, subject.pid, subject.database)
    mount = covering(parse_mountinfo(text(host, f"/proc/{subject.pid}/mountinfo") or ""), path) if path else None
    upper = next((each for each in mount.super_options if each.startswith("upperdir=")), None) if mount else None
    if upper is not None:
        hosts = parse_mountinfo(text(host, "/proc/self/mountinfo") or "")
        mount = covering(hosts, upper.partition("=")[2])
    if mount is None or mount.device.startswith("0:"):
        return ""
    parts = answer(host, ["readlink", "-f", f"/sys/dev/block/{mount.device}"]).strip().split("/")
    return parts[parts.index("block") + 1] if "block" in parts[:-1] else ""


def flushes_of(diskstats: str, disk: str) -> tuple[int, int] | None:
    """Number and milliseconds of a disk's flushes: fields 19 and 20 of its line, since Linux 5.5."""
    rows = (line.split() for line in diskstats.splitlines())
    row = next((row for row in rows if len(row) >= _WITH_FLUSHES and row[2] == disk), None)
    return None if row is None else (int(row[18]), int(row[19]))


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _scheduled(host: Host, pids: list[int]) -> tuple[int | None, int | None]:
    """Time that the threads of a container ran and waited for a CPU (Documentation/scheduler/sched-stats.rst)."""
    places = [f"/proc/{pid}/task" for pid in pids]
    shown = answer(
        host, ["find", *places, "-maxdepth", "2", "-name", "schedstat", "-exec", "cat", "{}", "+"], partial=True
    )
    rows = [line.split() for line in shown.splitlines()]
    times = [(int(row[0]), int(row[1])) for row in rows if len(row) == 3 and row[0].isdecimal()]
    return (sum(ran for ran, _ in times), sum(waited for _, waited in times)) if times else (None, None)


def _proxy_ticks(host: Host) -> int | None:
    """CPU time of all programs that carry ports; none of them: 0."""
    try:
        carriers = named(host, CARRIERS)
    except HostSilent:
        raise
    except RunFailed:
        return None
    total = 0
    for pid in carriers:
        fields = (text(host, f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
        used = [as_int(field) for field in fields[11:13]]
        total += sum(ticks for ticks in used if ticks is not None)
    return total
