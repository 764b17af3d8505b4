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

from tare.deployments.cgroup.hierarchy import CgroupKind, parse_cgroups
from tare.deployments.mounts import covering, parse_mountinfo
from tare.errors import RunFailed, TareError
from tare.record.host_facts import HostFacts
from tare.sites import Host
from tare.sites.netfilter import netfilter_of
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
_CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_CPUS = "/sys/devices/system/cpu"
_NODES = "/sys/devices/system/node"
_USER_HZ = 100
"""Ticks per second in /proc/stat: fixed in the kernel's interface on every architecture but Alpha and IA-64."""
_BRIDGE = "/proc/sys/net/bridge"
_KDAMONDS = "/sys/kernel/mm/damon/admin/kdamonds"
_DAMON_RECLAIM = "/sys/module/damon_reclaim/parameters/enabled"
_TRIES = 20
_BETWEEN_TRIES_S = 0.02


def host_facts(host: Host, *, data_path: str = "/") -> HostFacts:
    """Read all facts of the host. `data_path`: directory of its future data directories."""
    release = table(text(host, "/etc/os-release"), "=")
    kernel = text(host, "/proc/sys/kernel/osrelease")
    available = text(host, f"{_CLOCKS}/available_clocksource")
    loads = [as_float(mean) for mean in (text(host, "/proc/loadavg") or "").split()[:3]]
    load_1min, load_5min, load_15min = loads if len(loads) == 3 else (None, None, None)
    cpu = table(text(host, "/proc/cpuinfo"), ":")
    online = cpu_list(text(host, f"{_CPUS}/online")) or ()
    sockets, cores = _topology(host, online)
    steal_s, steal_fraction = _steal(host)
    memory = table(text(host, "/proc/meminfo"), ":")
    swap_total, swap_free = _bytes(memory.get("SwapTotal")), _bytes(memory.get("SwapFree"))
    layout, controllers = _cgroups(host)
    netfilter = netfilter_of(host)
    point, total, free = _space(host, data_path)
    mount = None if point is None else covering(parse_mountinfo(text(host, "/proc/self/mountinfo") or ""), point)
    device, queue = _disk(host, mount.device if mount else None)
    return HostFacts(
        name=host.name,
        os=release.get("PRETTY_NAME", "").strip('"') or None,
        os_id=release.get("ID", "").strip('"') or None,
        os_version=release.get("VERSION_ID", "").strip('"') or None,
        architecture=answer(host, ["uname", "-m"]).strip() or None,
        kernel=kernel,
        kernel_build=text(host, "/proc/sys/kernel/version"),
        kernel_arguments=_arguments(host),
        kernel_hz=_hz(host, kernel),
        kernel_security_modules=text(host, "/sys/kernel/security/lsm"),
        sched_autogroup=switch(host, "/proc/sys/kernel/sched_autogroup_enabled"),
        tare_is_root=None if (user := answer(host, ["id", "-u"]).strip()) == "" else user == "0",
        perf_event_paranoid=number(host, "/proc/sys/kernel/perf_event_paranoid"),
        boot_id=boot_id(host) or None,
        uptime_s=as_float((text(host, "/proc/uptime") or "").partition(" ")[0]),
        clocksource=text(host, f"{_CLOCKS}/current_clocksource"),
        clocksources=tuple(available.split()) if available else None,
        load_1min=load_1min,
        load_5min=load_5min,
        load_15min=load_15min,
        cpu_model=cpu.get("model name") or cpu.get("Processor") or cpu.get("cpu model"),
        cpu_vendor=cpu.get("vendor_id") or cpu.get("CPU implementer"),
        cpu_microcode=cpu.get("microcode"),
        cpu_count=len(online) or None,
        cpu_online=text(host, f"{_CPUS}/online"),
        cpu_isolated=text(host, f"{_CPUS}/isolated"),
        cpu_smt=text(host, f"{_CPUS}/smt/control"),
        cpu_mhz_now=as_float(cpu.get("cpu MHz")),
        cpu_sockets=sockets,
        cpu_cores=cores,
        cpu_numa_nodes=_numa_nodes(host),
        cpu_numa_balancing=switch(host, "/proc/sys/kernel/numa_balancing"),
        cpu_frequency_driver=text(host, f"{_CPUS}/cpu0/cpufreq/scaling_driver"),
        cpu_governors=_governors(host, online),
        cpu_turbo=_turbo(host),
        cpu_khz_min=number(host, f"{_CPUS}/cpu0/cpufreq/scaling_min_freq"),
        cpu_khz_max=number(host, f"{_CPUS}/cpu0/cpufreq/scaling_max_freq"),
        cpu_idle_driver=text(host, f"{_CPUS}/cpuidle/current_driver"),
        cpu_mitigations=_mitigations(host),
        cpu_steal_s=steal_s,
        cpu_steal_fraction=steal_fraction,
        memory_total_bytes=_bytes(memory.get("MemTotal")),
        memory_available_bytes=_bytes(memory.get("MemAvailable")),
        swap_total_bytes=swap_total,
        swap_used_bytes=None if swap_total is None or swap_free is None else swap_total - swap_free,
        swappiness=number(host, "/proc/sys/vm/swappiness"),
        huge_pages=as_int(memory.get("HugePages_Total")),
        thp=chosen(host, "/sys/kernel/mm/transparent_hugepage/enabled"),
        thp_defrag=chosen(host, "/sys/kernel/mm/transparent_hugepage/defrag"),
        proactive_reclaim=_proactive_reclaim(host),
        cgroup_layout=layout,
        cgroup_controllers=controllers,
        hypervisor_flag="hypervisor" in cpu["flags"].split() if cpu.get("flags") else None,
        hypervisor=text(host, "/sys/hypervisor/type"),
        dmi_vendor=text(host, "/sys/class/dmi/id/sys_vendor"),
        dmi_product=text(host, "/sys/class/dmi/id/product_name"),
        in_container=any(host.read(path) is not None for path in ("/.dockerenv", "/run/.containerenv")),
        bridge_nf_call_iptables=switch(host, f"{_BRIDGE}/bridge-nf-call-iptables"),
        bridge_nf_call_ip6tables=switch(host, f"{_BRIDGE}/bridge-nf-call-ip6tables"),
        ip_forward=switch(host, "/proc/sys/net/ipv4/ip_forward"),
        somaxconn=number(host, "/proc/sys/net/core/somaxconn"),
        sysctls=sysctls(host, _SYSCTLS),
        netfilter_conntrack=netfilter.conntrack,
        netfilter_nat_output=netfilter.rules.output if netfilter.rules else None,
        netfilter_nat_prerouting=netfilter.rules.prerouting if netfilter.rules else None,
        netfilter_rules=netfilter.rules.total if netfilter.rules else None,
        data_path=data_path,
        data_mount_point=point,
        data_filesystem=mount.fstype if mount else None,
        data_mount_options=tuple(sorted({*mount.options, *mount.super_options})) if mount else None,
        data_source=mount.source if mount else None,
        data_total_bytes=total,
        data_free_bytes=free,
        data_device=device,
        data_io_scheduler=queue and chosen(host, f"{queue}/scheduler"),
        data_rotational=switch(host, f"{queue}/rotational") if queue else None,
        data_write_cache=queue and text(host, f"{queue}/write_cache"),
        data_read_ahead_kib=number(host, f"{queue}/read_ahead_kb") if queue else None,
        data_queue_requests=number(host, f"{queue}/nr_requests") if queue else None,
    )


def _arguments(host: Host) -> tuple[str, ...] | None:
    arguments = text(host, "/proc/cmdline")
    return None if arguments is None else tuple(word for word in arguments.split() if _TELLING.fullmatch(word))


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


def _proactive_reclaim(host: Host) -> tuple[str, ...] | None:
    """Mechanisms that page out cold memory: DAMON's threads and its module; `None` if that is not visible.

    Source: the kernel's Documentation/admin-guide/mm/damon.
    """
    threads, module = number(host, f"{_KDAMONDS}/nr_kdamonds"), switch(host, _DAMON_RECLAIM)
    if threads is None and module is None:
        return None
    states = [_state(host, f"{_KDAMONDS}/{n}") for n in range(threads or 0)]
    on = (n for n, state in enumerate(states) if state == "on")
    paging = [f"kdamond {n}" for n in on if _pages_out(host, f"{_KDAMONDS}/{n}")]
    known = (*paging, *(["damon_reclaim"] if module else []))
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


def _topology(host: Host, cpus: tuple[int, ...]) -> tuple[int | None, int | None]:  # sockets, cores
    places = [f"{_CPUS}/cpu{cpu}/topology" for cpu in cpus]
    read = [(text(host, f"{place}/physical_package_id"), text(host, f"{place}/core_id")) for place in places]
    if not read or any(None in pair for pair in read):
        return None, None
    return len({package for package, _ in read}), len(set(read))


def _numa_nodes(host: Host) -> Mapping[str, str | None] | None:
    nodes = [name for name in names(host, _NODES) if name.removeprefix("node").isdecimal()]
    return {node: text(host, f"{_NODES}/{node}/cpulist") for node in nodes} or None


def _governors(host: Host, cpus: tuple[int, ...]) -> tuple[str, ...] | None:
    read = {text(host, f"{_CPUS}/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus}
    return tuple(sorted(governor for governor in read if governor)) or None


def _turbo(host: Host) -> bool | None:
    no_turbo = switch(host, f"{_CPUS}/intel_pstate/no_turbo")
    return switch(host, f"{_CPUS}/cpufreq/boost") if no_turbo is None else not no_turbo


def _mitigations(host: Host) -> Mapping[str, str | None] | None:
    folder = f"{_CPUS}/vulnerabilities"
    return {name: text(host, f"{folder}/{name}") for name in names(host, folder)} or None


def _steal(host: Host) -> tuple[float | None, float | None]:  # seconds, share of all time
    """Read the time that the hypervisor gave to others since boot; guest time is already part of user time."""
    fields = (text(host, "/proc/stat") or "").partition("\n")[0].split()[1:9]
    ticks = [int(field) for field in fields if field.isdecimal()]
    if len(ticks) < 8:
        return None, None
    return ticks[7] / _USER_HZ, ticks[7] / sum(ticks) if any(ticks) else None


def _cgroups(host: Host) -> tuple[str | None, tuple[str, ...] | None]:  # layout, controllers
    try:
        cgroups = parse_cgroups(text(host, "/proc/self/mountinfo") or "")
    except TareError:
        return None, None
    if cgroups.kind is CgroupKind.V2:
        available = text(host, f"{cgroups.hierarchies[0].mount}/cgroup.controllers")
        return cgroups.kind.value, None if available is None else tuple(sorted(available.split()))
    return cgroups.kind.value, tuple(sorted({name for each in cgroups.hierarchies for name in each.controllers}))


def _space(host: Host, path: str) -> tuple[str | None, int | None, int | None]:  # mount point, total, free
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        # df follows links and finds the mount by device, unlike a comparison of names.
        lines = answer(host, ["df", "--block-size=1", "--output=size,avail,target", "--", str(place)]).splitlines()
        if len(lines) == 2:
            size, free, point = lines[1].split(None, 2)
            return point, as_int(size), as_int(free)
    return None, None, None


def _disk(host: Host, number_of_device: str | None) -> tuple[str | None, str | None]:  # name, its queue
    """Return a disk's name and the directory of its queue, which is the whole disk's."""
    folder = f"/sys/dev/block/{number_of_device}"
    name = table(text(host, f"{folder}/uevent"), "=").get("DEVNAME") if number_of_device else None
    if name is None:
        return None, None
    return name, f"{folder}/queue" if text(host, f"{folder}/queue/scheduler") else f"{folder}/../queue"
