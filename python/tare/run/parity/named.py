"""Which known traps undeclared differences are, by facts of both runs."""

from __future__ import annotations

from collections.abc import Mapping

from tare.record.run_record import RunRecord
from tare.traps.met import Met, traps_apart
from tare.traps.of_run import facts_of_run

FACTS_OF: Mapping[str, tuple[str, ...]] = {
    "CPU quota": ("cgroup.cpu_quota",),
    "memory limit": ("cgroup.memory_limit_bytes",),
    "oom_score_adj": ("process.oom_score_adj",),
    "calls that the seccomp filter forbids": ("seccomp.forbids",),
    "number of seccomp filters": ("seccomp.mode",),
    "seccomp": ("seccomp.mode",),
    "speculation controls": ("process.speculation_store_bypass",),
    "size of /dev/shm": ("shm.bytes",),
    "swap limit": ("cgroup.swap_allowed_bytes",),
    "limit of processes": ("cgroup.pids_limit",),
    "interface to disks": ("process.io",),
    "limit of explicit huge pages": ("cgroup.hugetlb_limited",),
    "log driver": ("log.driver",),
    "ulimit 'Max open files'": ("limits.nofile",),
    "ulimit 'Max locked memory'": ("limits.memlock_bytes",),
    "ulimit 'Max processes'": ("limits.nproc",),
    "network setting ": ("net.somaxconn", "net.unlike_host"),
    "variable skip_name_resolve": ("settings.skip_name_resolve",),
    "variable character_set_server": ("settings.character_set",),
    "network path": ("net.path", "net.loopback_clients"),
    "file system of ": ("data.filesystem",),
    "host: transparent huge pages": ("host.thp",),
    "host: clock source": ("host.clocksource",),
    "host: CPU frequency governors": ("host.cpu_governors",),
    "host: proactive reclaim": ("host.proactive_reclaim",),
    "host: netfilter tracks connections on the loopback device": ("host.netfilter_conntrack",),
}
"""Beginning of a compared property's name → facts of traps that it decides. The longer of two comes first."""


def traps_of(name: str, reference: RunRecord, record: RunRecord) -> tuple[Met, ...]:
    """Return the traps that one of two runs meets and the other does not, and that a property decides."""
    decided = _facts(name)
    if not decided:
        return ()
    one, other = (
        each.arm if reference.arm != record.arm else f"{each.arm} ({each.run_id})" for each in (reference, record)
    )
    runs = {one: (facts_of_run(reference),), other: (facts_of_run(record),)}
    return tuple(
        each for each in traps_apart(runs, {one: other, other: one}) if decided & set(each.trap.trap.facts)
    )


def _facts(name: str) -> frozenset[str]:
    """Facts that the property of a server, its network or its host decides."""
    own = name.removeprefix("SUT: ")
    return frozenset(next((facts for begins, facts in FACTS_OF.items() if own.startswith(begins)), ()))
