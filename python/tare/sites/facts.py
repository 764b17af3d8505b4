"""Recorded facts of a host: system, CPUs, memory, control groups, and the disk of its data directories.

Sources: proc(5), proc_stat(5), proc_pid_mountinfo(5); Documentation/admin-guide/pm/cpufreq.rst,
.../pm/intel_pstate.rst, .../hw-vuln/ and Documentation/block/queue-sysfs.rst of the kernel.
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from tare.deployments.cgroup.hierarchy import CgroupKind, parse_cgroups
from tare.deployments.mounts import covering, parse_mountinfo
from tare.errors import RunFailed, TareError
from tare.sites import Host
from tare.sites.netfilter import netfilter_facts
from tare.sites.process import boot_id
from tare.sites.reading import (
    answer,
    as_float,
    as_int,
    chosen,
    cpu_list,
    names,
    number,
    switch,
    sysctls,
    table,
    text,
)

_HZ = re.compile(rb"^CONFIG_HZ=(\d+)$", re.MULTILINE)
_TELLING = re.compile(
    r"(isolcpus|nohz_full|nohz|rcu_nocbs|mitigations|nosmt|maxcpus|idle|intel_idle\.\w+|processor\.\w+|intel_pstate"
    r"|amd_pstate|cpufreq\.\w+|transparent_hugepage|hugepages|hugepagesz|numa_balancing|clocksource|tsc|preempt"
    r"|threadirqs|skew_tick|psi|audit|cgroup_\w+|systemd\.unified_cgroup_hierarchy)(=\S*)?"
)
"""Kernel arguments that affect measurements; others may contain what nobody wants in a report."""
_SYSCTLS = (
    "fs.aio-max-nr", "kernel.sched_rt_runtime_us", "net.core.busy_poll", "net.core.busy_read",
    "net.core.default_qdisc", "net.core.netdev_max_backlog", "net.core.rmem_max",
    "net.core.wmem_max", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_wmem",
    "vm.dirty_background_bytes", "vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_expire_centisecs",
    "vm.dirty_ratio", "vm.dirty_writeback_centisecs", "vm.max_map_count", "vm.overcommit_memory",
    "vm.overcommit_ratio", "vm.vfs_cache_pressure", "vm.zone_reclaim_mode",
)  # fmt: skip
"""Settings of the kernel that databases and networks depend on."""
_BRIDGE = "/proc/sys/net/bridge"
_KDAMONDS = "/sys/kernel/mm/damon/admin/kdamonds"
_DAMON_RECLAIM = "/sys/module/damon_reclaim/parameters/enabled"
_TRIES = 20
_BETWEEN_TRIES_S = 0.02


def host_facts(host: Host, *, data_path: str = "/") -> Mapping[str, Any]:
    """All facts of the host. `data_path`: directory of its future data directories."""
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
        "sysctls": sysctls(host, _SYSCTLS),
        **netfilter_facts(host),
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
        "tare_is_root": None if (user := answer(host, ["id", "-u"]).strip()) == "" else user == "0",
        "perf_event_paranoid": number(host, "/proc/sys/kernel/perf_event_paranoid"),
    }


def _arguments(host: Host) -> list[str] | None:
    arguments = text(host, "/proc/cmdline")
    return None if arguments is None else [word for word in arguments.split() if _TELLING.fullmatch(word)]


def _hz(host: Host, kernel: str | None) -> int | None:
    """The timer frequency of the kernel's configuration, which is the only source for it."""
    for path in ("/proc/config.gz", f"/boot/config-{kernel}"):
        try:
            raw = host.read(path)
            config = gzip.decompress(raw) if raw and path.endswith(".gz") else raw
        except (RunFailed, OSError):
            continue
        if config and (match := _HZ.search(config)):
            return int(match[1])
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
    """Mechanisms that page out cold memory: DAMON's threads and its module; `None` if that is not visible.

    Source: the kernel's Documentation/admin-guide/mm/damon.
    """
    threads, module = number(host, f"{_KDAMONDS}/nr_kdamonds"), switch(host, _DAMON_RECLAIM)
    if threads is None and module is None:
        return None
    states = [_state(host, f"{_KDAMONDS}/{n}") for n in range(threads or 0)]
    on = (n for n, state in enumerate(states) if state == "on")
    paging = [f"kdamond {n}" for n in on if _pages_out(host, f"{_KDAMONDS}/{n}")]
    known = [*paging, *(["damon_reclaim"] if module else [])]
    return known if known or None not in states else None


def _state(host: Host, thread: str) -> str | None:
    """State of a DAMON thread; the kernel answers EBUSY while somebody else reads it (mm/damon/sysfs.c)."""
    for _ in range(_TRIES):
        if (state := text(host, f"{thread}/state")) is not None:
            return state
        time.sleep(_BETWEEN_TRIES_S)
    return None


def _pages_out(host: Host, thread: str) -> bool:
    contexts = range(number(host, f"{thread}/contexts/nr_contexts") or 0)
    every = [f"{thread}/contexts/{n}/schemes" for n in contexts]
    return any(
        text(host, f"{schemes}/{n}/action") == "pageout"
        for schemes in every
        for n in range(number(host, f"{schemes}/nr_schemes") or 0)
    )


def _bytes(value: str | None) -> int | None:
    """Bytes of a size in /proc/meminfo, which is in KiB though it says kB."""
    kib = as_int(value.removesuffix(" kB")) if value else None
    return None if kib is None else kib * 1024


def _virtualisation(host: Host) -> Mapping[str, Any]:
    """Whether this is a virtual machine, and whether tare is in a container.

    CPU, firmware and hypervisor show the former.
    """
    flags = table(text(host, "/proc/cpuinfo"), ":").get("flags")
    return {
        "hypervisor_flag": "hypervisor" in flags.split() if flags else None,
        "hypervisor": text(host, "/sys/hypervisor/type"),
        "dmi_vendor": text(host, "/sys/class/dmi/id/sys_vendor"),
        "dmi_product": text(host, "/sys/class/dmi/id/product_name"),
        "in_container": any(host.read(path) is not None for path in ("/.dockerenv", "/run/.containerenv")),
    }


def _network(host: Host) -> Mapping[str, Any]:
    """Settings that decide whether frames on a bridge cross the firewall.

    `None` while br_netfilter is not loaded.
    """
    return {
        "bridge_nf_call_iptables": switch(host, f"{_BRIDGE}/bridge-nf-call-iptables"),
        "bridge_nf_call_ip6tables": switch(host, f"{_BRIDGE}/bridge-nf-call-ip6tables"),
        "ip_forward": switch(host, "/proc/sys/net/ipv4/ip_forward"),
        "somaxconn": number(host, "/proc/sys/net/core/somaxconn"),
    }


_CPUS = "/sys/devices/system/cpu"
_USER_HZ = 100
"""Ticks per second in /proc/stat: fixed in the kernel's interface on every architecture but Alpha and IA-64."""


def cpu_facts(host: Host) -> Mapping[str, Any]:
    """Facts with names that begin with `cpu_`."""
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


def cgroup_facts(host: Host) -> Mapping[str, Any]:
    """`cgroup_layout`: v1, hybrid or v2. `cgroup_controllers`: controllers that a child cgroup can have here."""
    try:
        cgroups = parse_cgroups(text(host, "/proc/self/mountinfo") or "")
    except TareError:
        return {"cgroup_layout": None, "cgroup_controllers": None}
    if cgroups.kind is CgroupKind.V2:
        available = text(host, f"{cgroups.hierarchies[0].mount}/cgroup.controllers")
        controllers = None if available is None else sorted(available.split())
    else:
        controllers = sorted({name for hierarchy in cgroups.hierarchies for name in hierarchy.controllers})
    return {
        "cgroup_layout": cgroups.kind.value,
        "cgroup_controllers": controllers,
    }


def storage_facts(host: Host, path: str) -> Mapping[str, Any]:
    """Facts with names that begin with `data_`, for `path` or its nearest existing parent."""
    point, total, free = _space(host, path)
    mount = None if point is None else covering(parse_mountinfo(text(host, "/proc/self/mountinfo") or ""), point)
    return {
        "data_path": path,
        "data_mount_point": point,
        "data_filesystem": None if mount is None else mount.fstype,
        "data_mount_options": None if mount is None else sorted({*mount.options, *mount.super_options}),
        "data_source": None if mount is None else mount.source,
        "data_total_bytes": total,
        "data_free_bytes": free,
        **_device(host, None if mount is None else mount.device),
    }


def _space(host: Host, path: str) -> tuple[str | None, int | None, int | None]:  # mount point, total, free
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        # df follows links and finds the mount by device, unlike a comparison of names.
        lines = answer(host, ["df", "--block-size=1", "--output=size,avail,target", "--", str(place)]).splitlines()
        if len(lines) == 2:
            size, free, point = lines[1].split(None, 2)
            return point, as_int(size), as_int(free)
    return None, None, None


def _device(host: Host, number_of_device: str | None) -> Mapping[str, Any]:
    """Facts of the disk. Its queue belongs to the whole disk: for a partition, to the directory above."""
    folder = f"/sys/dev/block/{number_of_device}"
    name = table(text(host, f"{folder}/uevent"), "=").get("DEVNAME") if number_of_device else None
    queue = f"{folder}/queue" if text(host, f"{folder}/queue/scheduler") else f"{folder}/../queue"
    known = name is not None
    return {
        "data_device": name,
        "data_io_scheduler": chosen(host, f"{queue}/scheduler") if known else None,
        "data_rotational": switch(host, f"{queue}/rotational") if known else None,
        "data_write_cache": text(host, f"{queue}/write_cache") if known else None,
        "data_read_ahead_kib": number(host, f"{queue}/read_ahead_kb") if known else None,
        "data_queue_requests": number(host, f"{queue}/nr_requests") if known else None,
    }
