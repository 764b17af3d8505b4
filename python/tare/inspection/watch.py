"""What only load shows: counters of a server at two moments, and what happened between them."""

from __future__ import annotations

from dataclasses import dataclass

from tare.deployments.network.path import CARRIERS, members
from tare.errors import HostSilent, RunFailed
from tare.inspection.gather import log_bytes
from tare.inspection.groups import group_of, oom_kills, throttling
from tare.inspection.network import listen_overflows
from tare.inspection.readings import Readings
from tare.inspection.subject import Subject
from tare.sites import Host
from tare.sites.process import TICKS_PER_S, named
from tare.sites.reading import answer, as_int, text


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


def counters(host: Host, subject: Subject) -> Counters:
    """Read all counters of a server now."""
    group = group_of(host, subject.pid)
    ran, waited = _scheduled(host, members(host, subject.pid))
    return Counters(
        at_s=float((text(host, "/proc/uptime") or "0").split()[0]),
        periods=throttling(group)[0],
        kills=oom_kills(group)[0],
        overflows=listen_overflows(host, subject.pid),
        ran_ns=ran,
        waited_ns=waited,
        proxy_ticks=_proxy_ticks(host),
        log=log_bytes(host, subject),
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
    log = _grown(before.log, after.log)
    facts.put(
        "load.log_bytes_per_s", None if log is None else log / seconds, f"size of its log, {where}", "no log file"
    )


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _scheduled(host: Host, pids: list[int]) -> tuple[int | None, int | None]:
    """Time that the threads of a container ran and waited for a CPU (Documentation/scheduler/sched-stats.rst)."""
    places = [f"/proc/{pid}/task" for pid in pids]
    shown = answer(host, ["find", *places, "-maxdepth", "2", "-name", "schedstat", "-exec", "cat", "{}", "+"])
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
