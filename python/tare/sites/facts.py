"""Facts of a host: all about the machine that could explain a result. Keys: docs/reference/facts.md.

Read through `Host` alone. Missing stays `None`: a fact that cannot be read is never guessed.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from typing import Any

from tare.errors import RunFailed
from tare.sites import Host
from tare.sites.cgroup_facts import cgroup_facts
from tare.sites.cpu_facts import cpu_facts
from tare.sites.engine_facts import engine_facts
from tare.sites.process import boot_id
from tare.sites.reading import answer, as_float, as_int, chosen, number, switch, table, text
from tare.sites.storage_facts import storage_facts

__all__ = ["engine_facts", "host_facts"]

_HZ = re.compile(rb"^CONFIG_HZ=(\d+)$", re.MULTILINE)
_TELLING = re.compile(
    r"(isolcpus|nohz_full|nohz|rcu_nocbs|mitigations|nosmt|maxcpus|idle|intel_idle\.\w+|processor\.\w+|intel_pstate"
    r"|amd_pstate|cpufreq\.\w+|transparent_hugepage|hugepages|hugepagesz|numa_balancing|clocksource|tsc|preempt"
    r"|threadirqs|skew_tick|psi|audit|cgroup_\w+|systemd\.unified_cgroup_hierarchy)(=\S*)?"
)
"""Kernel arguments that bear on measurements; the others may hold what nobody wants in a report."""
_BRIDGE = "/proc/sys/net/bridge"
_KDAMONDS = "/sys/kernel/mm/damon/admin/kdamonds"
_DAMON_RECLAIM = "/sys/module/damon_reclaim/parameters/enabled"


def host_facts(host: Host, *, data_path: str = "/") -> Mapping[str, Any]:
    """Everything known of the host now. `data_path`: where data directories will lie."""
    return {
        "name": host.name,
        **_system(host),
        **_clock(host),
        **_load(host),
        **cpu_facts(host),
        **_memory(host),
        **cgroup_facts(host),
        **_virtualisation(host),
        **_network(host),
        **storage_facts(host, data_path),
    }


def _system(host: Host) -> Mapping[str, Any]:
    release = table(text(host, "/etc/os-release"), "=")
    kernel = text(host, "/proc/sys/kernel/osrelease")
    return {
        "os": release.get("PRETTY_NAME", "").strip('"') or None,
        "os_id": release.get("ID", "").strip('"') or None,
        "os_version": release.get("VERSION_ID", "").strip('"') or None,
        "architecture": answer(host, ["uname", "-m"]).strip() or None,
        "kernel": kernel,
        "kernel_build": text(host, "/proc/sys/kernel/version"),
        "kernel_arguments": _arguments(host),
        "kernel_hz": _hz(host, kernel),
        "kernel_security_modules": text(host, "/sys/kernel/security/lsm"),
        "sched_autogroup": switch(host, "/proc/sys/kernel/sched_autogroup_enabled"),
        "perf_event_paranoid": number(host, "/proc/sys/kernel/perf_event_paranoid"),
    }


def _arguments(host: Host) -> list[str] | None:
    arguments = text(host, "/proc/cmdline")
    return None if arguments is None else [word for word in arguments.split() if _TELLING.fullmatch(word)]


def _hz(host: Host, kernel: str | None) -> int | None:
    """The timer's frequency as the kernel was configured; there is no other way to ask for it."""
    for path in ("/proc/config.gz", f"/boot/config-{kernel}"):
        try:
            raw = host.read(path)
            config = gzip.decompress(raw) if raw and path.endswith(".gz") else raw
        except (RunFailed, OSError):
            continue
        if config and (found := _HZ.search(config)):
            return int(found[1])
    return None


def _clock(host: Host) -> Mapping[str, Any]:
    folder = "/sys/devices/system/clocksource/clocksource0"
    available = text(host, f"{folder}/available_clocksource")
    return {
        "boot_id": boot_id(host) or None,
        "uptime_s": as_float((text(host, "/proc/uptime") or "").partition(" ")[0]),
        "clocksource": text(host, f"{folder}/current_clocksource"),
        "clocksources": available.split() if available else None,
    }


def _load(host: Host) -> Mapping[str, Any]:
    means = (text(host, "/proc/loadavg") or "").split()
    return {
        f"load_{minutes}min": as_float(means[position]) if len(means) > position else None
        for position, minutes in enumerate((1, 5, 15))
    }


def _memory(host: Host) -> Mapping[str, Any]:
    info = table(text(host, "/proc/meminfo"), ":")
    total, free = _bytes(info.get("SwapTotal")), _bytes(info.get("SwapFree"))
    return {
        "memory_total_bytes": _bytes(info.get("MemTotal")),
        "memory_available_bytes": _bytes(info.get("MemAvailable")),
        "swap_total_bytes": total,
        "swap_used_bytes": None if total is None or free is None else total - free,
        "swappiness": number(host, "/proc/sys/vm/swappiness"),
        "huge_pages": as_int(info.get("HugePages_Total")),
        "thp": chosen(host, "/sys/kernel/mm/transparent_hugepage/enabled"),
        "thp_defrag": chosen(host, "/sys/kernel/mm/transparent_hugepage/defrag"),
        "proactive_reclaim": _proactive_reclaim(host),
    }


def _proactive_reclaim(host: Host) -> list[str] | None:
    """What pages out by itself what seems cold: DAMON's threads and its module; `None` where neither can be seen.

    Source: the kernel's Documentation/admin-guide/mm/damon.
    """
    threads, module = number(host, f"{_KDAMONDS}/nr_kdamonds"), switch(host, _DAMON_RECLAIM)
    if threads is None and module is None:
        return None
    paging = [f"kdamond {n}" for n in range(threads or 0) if _pages_out(host, f"{_KDAMONDS}/{n}")]
    return [*paging, *(["damon_reclaim"] if module else [])]


def _pages_out(host: Host, thread: str) -> bool:
    if text(host, f"{thread}/state") != "on":
        return False
    contexts = range(number(host, f"{thread}/contexts/nr_contexts") or 0)
    every = [f"{thread}/contexts/{n}/schemes" for n in contexts]
    return any(
        text(host, f"{schemes}/{n}/action") == "pageout"
        for schemes in every
        for n in range(number(host, f"{schemes}/nr_schemes") or 0)
    )


def _bytes(value: str | None) -> int | None:
    """A size of /proc/meminfo, which is in KiB though it says kB."""
    kib = as_int(value.removesuffix(" kB")) if value else None
    return None if kib is None else kib * 1024


def _virtualisation(host: Host) -> Mapping[str, Any]:
    """Whether this is a virtual machine, as CPU, firmware and hypervisor tell; whether tare is in a container."""
    flags = table(text(host, "/proc/cpuinfo"), ":").get("flags")
    return {
        "hypervisor_flag": "hypervisor" in flags.split() if flags else None,
        "hypervisor": text(host, "/sys/hypervisor/type"),
        "dmi_vendor": text(host, "/sys/class/dmi/id/sys_vendor"),
        "dmi_product": text(host, "/sys/class/dmi/id/product_name"),
        "in_container": any(host.read(path) is not None for path in ("/.dockerenv", "/run/.containerenv")),
    }


def _network(host: Host) -> Mapping[str, Any]:
    """What decides whether frames on a bridge cross the firewall; `None` while br_netfilter is not loaded."""
    return {
        "bridge_nf_call_iptables": switch(host, f"{_BRIDGE}/bridge-nf-call-iptables"),
        "bridge_nf_call_ip6tables": switch(host, f"{_BRIDGE}/bridge-nf-call-ip6tables"),
        "ip_forward": switch(host, "/proc/sys/net/ipv4/ip_forward"),
        "somaxconn": number(host, "/proc/sys/net/core/somaxconn"),
    }
