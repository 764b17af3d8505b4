"""CPUs of a host: model, topology, frequency control, idle states, mitigations, time taken away.

Sources: Documentation/admin-guide/pm/cpufreq.rst, .../pm/intel_pstate.rst, .../hw-vuln/, proc_stat(5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.sites import Host
from tare.sites.reading import as_float, cpu_list, names, number, switch, table, text

_CPUS = "/sys/devices/system/cpu"
_USER_HZ = 100
"""Ticks a second of /proc/stat: fixed in the kernel's interface on every architecture but Alpha and IA-64."""


def cpu_facts(host: Host) -> Mapping[str, Any]:
    """Facts whose names begin with `cpu_`."""
    info = table(text(host, "/proc/cpuinfo"), ":")
    online = cpu_list(text(host, f"{_CPUS}/online"))
    return {
        "cpu_model": info.get("model name") or info.get("Processor") or info.get("cpu model"),
        "cpu_vendor": info.get("vendor_id") or info.get("CPU implementer"),
        "cpu_microcode": info.get("microcode"),
        "cpu_count": len(online) if online else None,
        "cpu_online": text(host, f"{_CPUS}/online"),
        "cpu_isolated": text(host, f"{_CPUS}/isolated"),
        "cpu_smt": text(host, f"{_CPUS}/smt/control"),
        "cpu_mhz_now": as_float(info.get("cpu MHz")),
        **_topology(host, online or ()),
        **_frequency(host, online or ()),
        "cpu_idle_driver": text(host, f"{_CPUS}/cpuidle/current_driver"),
        "cpu_mitigations": _mitigations(host),
        **_steal(host),
    }


def _topology(host: Host, cpus: tuple[int, ...]) -> Mapping[str, Any]:
    read = [
        (
            text(host, f"{_CPUS}/cpu{cpu}/topology/physical_package_id"),
            text(host, f"{_CPUS}/cpu{cpu}/topology/core_id"),
        )
        for cpu in cpus
    ]
    known = bool(read) and all(None not in pair for pair in read)
    nodes = [name for name in names(host, "/sys/devices/system/node") if name.removeprefix("node").isdecimal()]
    return {
        "cpu_sockets": len({package for package, _ in read}) if known else None,
        "cpu_cores": len(set(read)) if known else None,
        "cpu_numa_nodes": {
            node: text(host, f"/sys/devices/system/node/{node}/cpulist") for node in nodes
        } or None,
        "cpu_numa_balancing": switch(host, "/proc/sys/kernel/numa_balancing"),
    }  # fmt: skip


def _frequency(host: Host, cpus: tuple[int, ...]) -> Mapping[str, Any]:
    governors = {text(host, f"{_CPUS}/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus} - {None}
    no_turbo = switch(host, f"{_CPUS}/intel_pstate/no_turbo")
    return {
        "cpu_frequency_driver": text(host, f"{_CPUS}/cpu0/cpufreq/scaling_driver"),
        "cpu_governors": sorted(governor for governor in governors if governor) or None,
        "cpu_turbo": switch(host, f"{_CPUS}/cpufreq/boost") if no_turbo is None else not no_turbo,
        "cpu_khz_min": number(host, f"{_CPUS}/cpu0/cpufreq/scaling_min_freq"),
        "cpu_khz_max": number(host, f"{_CPUS}/cpu0/cpufreq/scaling_max_freq"),
    }


def _mitigations(host: Host) -> Mapping[str, str | None] | None:
    folder = f"{_CPUS}/vulnerabilities"
    return {name: text(host, f"{folder}/{name}") for name in names(host, folder)} or None


def _steal(host: Host) -> Mapping[str, Any]:
    """Time that the hypervisor gave to others since boot; guest time is already part of user time."""
    fields = (text(host, "/proc/stat") or "").partition("\n")[0].split()[1:9]
    ticks = [int(field) for field in fields if field.isdecimal()]
    if len(ticks) < 8:
        return {"cpu_steal_s": None, "cpu_steal_fraction": None}
    return {
        "cpu_steal_s": ticks[7] / _USER_HZ,
        "cpu_steal_fraction": ticks[7] / sum(ticks) if any(ticks) else None,
    }
