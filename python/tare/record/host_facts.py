"""Recorded facts of a host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts of a host at the beginning of an attempt."""

    name: str | None = None
    """Name of the host in its site."""
    os: str | None = None
    """Distribution, from `/etc/os-release`, as are the next two."""
    os_id: str | None = None
    """Its short name."""
    os_version: str | None = None
    """Its version."""
    architecture: str | None = None
    """Machine type, from `uname -m`."""
    kernel: str | None = None
    """Release of the kernel, from `/proc/sys/kernel/osrelease`."""
    kernel_build: str | None = None
    """Its build, from `/proc/sys/kernel/version`."""
    kernel_arguments: tuple[str, ...] | None = None
    """Boot arguments that affect measurements, from `/proc/cmdline`; others are omitted."""
    kernel_hz: int | None = None
    """Frequency of the timer tick, from the kernel's configuration: `/proc/config.gz`, `/boot/config-*`."""
    kernel_security_modules: str | None = None
    """Active security modules, from `/sys/kernel/security/lsm`."""
    sched_autogroup: bool | None = None
    """Whether each session is a separate scheduling group, from `/proc/sys/kernel/sched_autogroup_enabled`."""
    tare_is_root: bool | None = None
    """Whether tare ran as root there, from `id -u`; as another user it records
    [less](../guides/without-root.md)."""
    perf_event_paranoid: int | None = None
    """Who may use performance counters, from `/proc/sys/kernel/perf_event_paranoid`; at 2 and more, only root sees
    the kernel."""
    boot_id: str | None = None
    """Identity of this boot, from `/proc/sys/kernel/random/boot_id`."""
    uptime_s: float | None = None
    """Time since boot, from `/proc/uptime`."""
    clocksource: str | None = None
    """Clock source in use, from `/sys/devices/system/clocksource/`, as is the next."""
    clocksources: tuple[str, ...] | None = None
    """Available clock sources."""
    load_1min: float | None = None
    """Load average over a minute at the time of reading, from `/proc/loadavg`, as are the next two."""
    load_5min: float | None = None
    """Over 5 minutes."""
    load_15min: float | None = None
    """Over 15 minutes."""
    cpu_model: str | None = None
    """Model of the first CPU, from `/proc/cpuinfo`, as are the next two."""
    cpu_vendor: str | None = None
    """Its vendor."""
    cpu_microcode: str | None = None
    """Its microcode."""
    cpu_count: int | None = None
    """Number of CPUs online, from `/sys/devices/system/cpu/`, as all facts of CPUs without another source."""
    cpu_online: str | None = None
    """Their list."""
    cpu_isolated: str | None = None
    """List of CPUs that are isolated from the scheduler."""
    cpu_smt: str | None = None
    """Simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`."""
    cpu_mhz_now: float | None = None
    """Clock of the first CPU at the time of reading, from `/proc/cpuinfo`."""
    cpu_sockets: int | None = None
    """Packages among the CPUs online."""
    cpu_cores: int | None = None
    """Physical cores among the CPUs online."""
    cpu_numa_nodes: Mapping[str, str | None] | None = None
    """Node → its CPUs, from `/sys/devices/system/node/`."""
    cpu_numa_balancing: bool | None = None
    """Whether pages are moved between nodes by use, from `/proc/sys/kernel/numa_balancing`."""
    cpu_frequency_driver: str | None = None
    """Driver of cpufreq; `null` where the hypervisor decides."""
    cpu_governors: tuple[str, ...] | None = None
    """All governors in use; `null` where the hypervisor decides."""
    cpu_turbo: bool | None = None
    """Whether frequencies above the nominal one are allowed, from `intel_pstate/no_turbo`, `cpufreq/boost`."""
    cpu_khz_min: int | None = None
    """Lowest frequency of the first CPU."""
    cpu_khz_max: int | None = None
    """Highest frequency of the first CPU."""
    cpu_idle_driver: str | None = None
    """Driver of the idle states."""
    cpu_mitigations: Mapping[str, str | None] | None = None
    """Vulnerability → state, as the kernel reports it."""
    cpu_steal_s: float | None = None
    """Time that the hypervisor gave to others since boot, from `/proc/stat`."""
    cpu_steal_fraction: float | None = None
    """Its share of all time."""
    memory_total_bytes: int | None = None
    """Total memory, from `/proc/meminfo`, as are the next three."""
    memory_available_bytes: int | None = None
    """Memory available without swapping."""
    swap_total_bytes: int | None = None
    """Swap space."""
    swap_used_bytes: int | None = None
    """Swap space in use."""
    swappiness: int | None = None
    """From `/proc/sys/vm/swappiness`."""
    huge_pages: int | None = None
    """Number of explicitly reserved huge pages, from `/proc/meminfo`."""
    thp: str | None = None
    """Transparent huge pages: the setting in force, from `/sys/kernel/mm/transparent_hugepage/`, as is the next."""
    thp_defrag: str | None = None
    """Their defragmentation."""
    proactive_reclaim: tuple[str, ...] | None = None
    """What reclaims cold pages proactively: `kdamond N` with a scheme `pageout`, `damon_reclaim`; from
    `/sys/kernel/mm/damon/admin/kdamonds/`, `/sys/module/damon_reclaim/`."""
    cgroup_layout: str | None = None
    """`v1`, `hybrid` (v1 with an empty v2 beside it) or `v2`, from `/proc/self/mountinfo`."""
    cgroup_controllers: tuple[str, ...] | None = None
    """Controllers that a control group can have here."""
    hypervisor_flag: bool | None = None
    """Whether the CPU reports that it is virtual (x86 only), from `/proc/cpuinfo`."""
    hypervisor: str | None = None
    """The hypervisor's own name (Xen), from `/sys/hypervisor/type`."""
    dmi_vendor: str | None = None
    """Maker of the machine, a hypervisor's included, from `/sys/class/dmi/id/`, as is the next."""
    dmi_product: str | None = None
    """Its model."""
    in_container: bool | None = None
    """Whether tare itself seems to run in a container, by `/.dockerenv`, `/run/.containerenv`."""
    bridge_nf_call_iptables: bool | None = None
    """Whether IPv4 frames on a bridge cross the firewall, from `/proc/sys/net/bridge/`, as is the next; `null`
    while `br_netfilter` is not loaded."""
    bridge_nf_call_ip6tables: bool | None = None
    """Whether IPv6 frames do."""
    ip_forward: bool | None = None
    """Whether the host forwards packets, from `/proc/sys/net/ipv4/ip_forward`."""
    somaxconn: int | None = None
    """Longest listen queue, from `/proc/sys/net/core/somaxconn`."""
    sysctls: Mapping[str, str] | None = None
    """Name → value of settings for TCP, sockets, dirty pages and overcommitting that the kernel has, from
    `/proc/sys/`."""
    netfilter_conntrack: bool | None = None
    """Whether netfilter tracks connections on the host's loopback device, from `/proc/sys/net/netfilter/` and the
    rules; `null`: only root may read it."""
    netfilter_nat_output: int | None = None
    """Rules at this hook of the nat table, which every connection of the host meets; from `nft -j list ruleset`,
    `iptables-legacy-save`, `iptables-save`, as are the next two."""
    netfilter_nat_prerouting: int | None = None
    """Rules at this one."""
    netfilter_rules: int | None = None
    """All rules for IPv4."""
    data_path: str | None = None
    """Directory of data directories."""
    data_mount_point: str | None = None
    """The mount under it, from `df`."""
    data_filesystem: str | None = None
    """Type of its file system, from `/proc/self/mountinfo`, as are the next two."""
    data_mount_options: tuple[str, ...] | None = None
    """Its options, sorted."""
    data_source: str | None = None
    """Its source, such as a device."""
    data_total_bytes: int | None = None
    """Size of that file system, from `df`."""
    data_free_bytes: int | None = None
    """What is free there for this user, from `df`."""
    data_device: str | None = None
    """Its block device, from `/sys/dev/block/`; `null` if it has none (tmpfs, overlay, btrfs, ZFS)."""
    data_io_scheduler: str | None = None
    """I/O scheduler of the whole disk, from `…/queue/`, as are the next four."""
    data_rotational: bool | None = None
    """Whether the disk reports that it rotates."""
    data_write_cache: str | None = None
    """Its write cache, as it reports it."""
    data_read_ahead_kib: int | None = None
    """How much the kernel reads ahead."""
    data_queue_requests: int | None = None
    """Longest queue of requests."""
