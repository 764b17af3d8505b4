"""What the traps ask for, as the record of a run has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.deployments import POD
from tare.record.host_facts import HostFacts
from tare.record.network_path import Hop
from tare.record.observation import Observation
from tare.record.run_record import RunRecord
from tare.record.usage import Saturation, Usage
from tare.study.values import NetworkKind
from tare.traps.of_arm import placed
from tare.traps.predicate import NONE, Facts, Known

_HOST: Mapping[str, str] = {
    "host.thp": "thp",
    "host.clocksource": "clocksource",
    "host.netfilter_conntrack": "netfilter_conntrack",
    "host.netfilter_rules": "netfilter_rules",
    "host.bridge_nf_call_iptables": "bridge_nf_call_iptables",
    "host.swap_total_bytes": "swap_total_bytes",
    "host.memory_total_bytes": "memory_total_bytes",
    "host.huge_pages": "huge_pages",
    "host.cpu_steal_fraction": "cpu_steal_fraction",
    "net.host_somaxconn": "somaxconn",
}
_SYSCTLS: Mapping[str, str] = {
    "host.overcommit_memory": "vm.overcommit_memory",
    "host.max_map_count": "vm.max_map_count",
}
_PATHS: Mapping[str, str] = {
    **dict.fromkeys(("loopback", "wire"), "host"),
    **dict.fromkeys(("bridge", "macvlan", "ipvlan", "socket"), NONE),
}
_SOFT: Mapping[str, str] = {
    "limits.nofile": "Max open files",
    "limits.memlock_bytes": "Max locked memory",
    "limits.nproc": "Max processes",
}


def facts_of_run(run: RunRecord) -> Facts:
    """Return what was in force during a run; what its record does not have is not known."""
    seen, host, usage = run.parity.sut or Observation(), run.host, run.usage or Usage()
    saturation = (usage.saturation and usage.saturation.sut) or Saturation()
    settings = _tree(run.settings.get("sut"))
    deployment = str(settings.get("deployment") or "bare")
    where = placed(deployment)
    hop = run.path and run.path.hop
    facts: dict[str, Known | None] = {
        "database": settings.get("database"),
        "placed": where,
        "runtime": settings.get("runtime") if where != "process" else NONE,
        "net.own_namespace": _own_namespace(run, seen),
        "net.path": hop and _PATHS.get(hop, hop.value),
        "net.loopback_clients": _loopback_clients(run),
        "net.unlike_host": _unlike_host(run, seen),
        "net.somaxconn": _number((seen.network_settings or {}).get("net.core.somaxconn")),
        "seccomp.mode": _number(seen.seccomp),
        "seccomp.forbids": _forbids(seen),
        "process.oom_score_adj": _number(seen.oom_score_adj),
        "shm.bytes": _number(seen.shm_bytes),
        "process.io": _io(seen.disk_interface),
        "process.links_io_uring": {"yes": True, "no": False}.get(seen.links_io_uring or ""),
        "log.driver": seen.log_driver,
        "settings.skip_name_resolve": {"ON": True, "OFF": False}.get(
            (run.effective or {}).get("skip_name_resolve", "")
        ),
        "settings.character_set": (run.effective or {}).get("character_set_server"),
        "root.filesystem": _file_system(seen.root_mount),
        "data.filesystem": _data(seen),
        "load.throttled_share": saturation.throttled,
        "load.run_queue_share": saturation.waiting,
        "load.oom_kills": usage.sut_oom_kills,
        "load.proxy_cpus": _share(usage.proxy_cpu_s, usage.over_s),
        "load.log_bytes_per_s": _share(usage.sut_output_bytes, usage.over_s),
        **facts_of_host(host),
        "host.cpu_steal_fraction": _stolen(usage),
        **{fact: _soft(seen.limits.get(key)) for fact, key in _SOFT.items()},
    }
    if run.parity.sut and deployment != POD:  # the limits of a pod are its group's parents' too
        facts["cgroup.cpu_quota"] = seen.cpu_quota or NONE
        facts["cgroup.memory_limit_bytes"] = seen.memory_bytes or NONE
        facts["cgroup.swap_allowed_bytes"] = _limit(seen.swap_limit)
        facts["cgroup.pids_limit"] = _limit(seen.pids_limit)
        if (pages := seen.hugetlb_limit) is not None:
            facts["cgroup.hugetlb_limited"] = pages == "0"
        if saturation.throttled is None and run.usage and seen.cpu_quota is None:
            facts["load.throttled_share"] = 0.0
    return {name: value for name, value in facts.items() if value is not None}


def facts_of_host(host: HostFacts) -> Facts:
    """Return what the facts of a host tell, whatever runs there."""
    sysctls = host.sysctls or {}
    facts: dict[str, Known | None] = {
        **{fact: getattr(host, key) for fact, key in _HOST.items()},
        **{fact: _number(sysctls.get(key)) for fact, key in _SYSCTLS.items()},
        "host.cpu_governors": host.cpu_governors or None,
        "host.proactive_reclaim": host.proactive_reclaim or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _tree(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | str) and str(value).lstrip("-").isdigit() else None


def _limit(value: object) -> Known | None:
    """Return a limit of a group, of which `max` is none."""
    return NONE if value == "max" else _number(value)


def _io(interface: object) -> Known | None:
    return NONE if interface == "neither" else None if interface is None else str(interface)


def _soft(limits: object) -> Known | None:
    """Return the soft limit of `20000 20000`."""
    soft = str(limits).split()[0] if limits else ""
    return NONE if soft == "unlimited" else _number(soft)


def _forbids(seen: Observation) -> Known | None:
    """Return the calls that the filter forbids; without a filter, none."""
    if seen.seccomp == "0":
        return NONE
    calls = seen.seccomp_forbids
    return None if calls is None else NONE if calls == NONE else tuple(calls.split())


def _own_namespace(run: RunRecord, seen: Observation) -> bool | None:
    """Whether the server has a network namespace of its own: another than a bare client's, or one without hooks."""
    if _tree(run.settings.get("sut")).get("network") == NetworkKind.UNTRACKED:
        return True
    client = _tree(run.settings.get("client"))
    theirs = run.parity.client and run.parity.client.namespaces.get("net")
    own = seen.namespaces.get("net")
    on_host = client.get("deployment") == "bare" and client.get("network") == "host"
    return own != theirs if on_host and own and theirs and run.client_host is None else None


def _loopback_clients(run: RunRecord) -> int | None:
    """Connections that take TCP on loopback; none by another path."""
    if run.path is None or run.path.hop is None:
        return None
    return run.path.connections if run.path.hop == Hop.LOOPBACK else 0


def _unlike_host(run: RunRecord, seen: Observation) -> Known | None:
    """Network settings that differ from those of a client in the host's own namespace."""
    own, theirs = seen.network_settings, run.parity.client and run.parity.client.network_settings
    if _own_namespace(run, seen) is None or not own or not theirs:
        return None
    names = (name for name in own if name.startswith("net.") and own[name] != theirs.get(name, own[name]))
    return tuple(f"{name} {own[name]} (host: {theirs[name]})" for name in names) or NONE


def _file_system(mount: object) -> str | None:
    """Return the file system of `ext4 254:0`."""
    return str(mount).split()[0] if mount else None


def _data(seen: Observation) -> str | None:
    """Return the file system below the data: of a mount that is not tare's, else of the root."""
    mounts = {place: mount for place, mount in seen.mounts.items() if not place.startswith("/run/")}
    return _file_system(next(iter(mounts.values()), None)) or _file_system(seen.root_mount)


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _stolen(usage: Usage) -> float | None:
    machine = usage.machine or {}
    return _share(machine.get("steal"), sum(machine.values()))
