"""What is in force around a process, read from the kernel. Every deployment uses the same reading."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from tare.deployments.cgroup.hierarchy import Cgroups, limited, parse_proc_cgroup
from tare.deployments.disks import iops_in_force
from tare.deployments.mounts import covering, describe_mount, parse_mountinfo
from tare.deployments.obtained import disk_access, hugetlb_limit, network_of, security_label, some
from tare.deployments.seccomp import filter_of
from tare.errors import HostSilent, RunFailed
from tare.record.observation import Observation
from tare.sites import Host
from tare.sites.process import Stat, parse_stat
from tare.sites.read_ahead import fetched
from tare.sites.reading import sysctls as sysctls_in

_OF_PROCESS = ("attr/current", "cgroup", "environ", "limits", "mountinfo", "oom_score_adj", "status", "uid_map")
_SWAP = ("memory", "memory.swap.max")
_LIMIT_FILES = (
    ("cpu", "cpu.shares"),
    ("cpu", "cpu.weight"),
    ("cpu", "cpu.max"),
    ("cpu", "cpu.cfs_quota_us"),
    ("cpu", "cpu.cfs_period_us"),
    ("memory", "memory.limit_in_bytes"),
    ("memory", "memory.memsw.limit_in_bytes"),
    ("memory", "memory.max"),
    _SWAP,
    ("pids", "pids.max"),
    ("memory", "memory.swappiness"),
    ("hugetlb", "hugetlb.2MB.limit_in_bytes"),
    ("hugetlb", "hugetlb.2MB.max"),
    ("blkio", "blkio.weight"),
    ("blkio", "blkio.bfq.weight"),
    ("io", "io.weight"),
    ("blkio", "blkio.throttle.read_iops_device"),
    ("blkio", "blkio.throttle.write_iops_device"),
    ("io", "io.max"),
)
"""Files of the control groups, by controller. They are read in one call, and the files of /proc/PID in another, as
every call takes a round trip over SSH."""
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
_SCHEDULERS = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""Numbers of SCHED_* in include/uapi/linux/sched.h."""
_V1_NO_LIMIT = 1 << 62
"""Without a limit, memory.limit_in_bytes is LONG_MAX rounded down to a page."""
_DIGEST_S = 60.0
SHM = "/dev/shm"  # noqa: S108 - only looked at
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
NETWORK_SETTINGS = (
    "net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_wmem",
)  # fmt: skip
"""Sysctls of a network namespace that a server's connections depend on (Documentation/networking/ip-sysctl.rst)."""
FILTERED = "2"
"""SECCOMP_MODE_FILTER of include/uapi/linux/seccomp.h."""
_ENDED = ("Z", "X")
"""States of a process that has ended (proc_pid_stat(5))."""


def observe(
    host: Host, cgroups: Cgroups, pid: int, targets: Sequence[str], sysctls: Iterable[str] = ()
) -> Observation:
    """Read /proc/PID and the process's cgroups; `targets`: mount targets, `sysctls`: further ones, to look up.

    Raises `RunFailed` if the process ended meanwhile: missing values would then say nothing about its placement.
    """
    process = fetched(host, [f"/proc/{pid}/{name}" for name in _OF_PROCESS])
    paths = parse_proc_cgroup(_text(process, f"/proc/{pid}/cgroup") or "")
    status = parse_status(_text(process, f"/proc/{pid}/status") or "")
    oom = _text(process, f"/proc/{pid}/oom_score_adj")
    limits = parse_limits(_text(process, f"/proc/{pid}/limits") or "")
    namespaces, binary_digest = namespaces_of(host, pid), _digest(host, pid)
    mountinfo = _text(process, f"/proc/{pid}/mountinfo") or ""
    id_map = parse_id_map(_text(process, f"/proc/{pid}/uid_map") or "")
    files = [*(file_of_group(cgroups, paths, *each) for each in _LIMIT_FILES), _own_file(cgroups, paths, *_SWAP)]
    groups = fetched(host, [file for file in files if file is not None])
    weight, quota = _cpu_weight(groups, cgroups, paths), _cpu_quota(groups, cgroups, paths)
    memory_bytes, disk_iops = _memory_bytes(groups, cgroups, paths), _disk_iops(groups, cgroups, paths)
    swap_limit = _swap_limit(groups, cgroups, paths)
    pids_limit = _in_cgroup(groups, cgroups, paths, "pids", "pids.max")
    shm_bytes = shm_bytes_of(host, pid, mountinfo)
    network_settings = network_settings_of(host, pid, sysctls)
    if network_settings is not None:
        network_settings = {**network_settings, **network_of(host, pid)}
    disks = disk_access(host, pid)
    filtered = filter_of(host, pid) if status.get("Seccomp") == FILTERED else None
    weights = (("blkio", "blkio.weight"), ("blkio", "blkio.bfq.weight"), ("io", "io.weight"))
    pages = [
        _in_cgroup(groups, cgroups, paths, "hugetlb", f"hugetlb.2MB.{name}") for name in ("limit_in_bytes", "max")
    ]
    environment = parse_environ(_text(process, f"/proc/{pid}/environ") or "")
    mems = status.get("Mems_allowed_list")
    stat = _last_look(host, pid)
    return Observation(
        cgroups=paths,
        cpu_weight=weight,
        cpus_allowed=status.get("Cpus_allowed_list"),
        cpu_quota=quota,
        memory_bytes=memory_bytes,
        limits=limits,
        seccomp=status.get("Seccomp"),
        speculation={name: value for name, value in status.items() if name.startswith("Speculation")},
        namespaces=namespaces,
        binary_digest=binary_digest,
        scheduler=scheduler_of(stat),
        oom_score_adj=None if oom is None else int(oom),
        mounts=mounts_of(mountinfo, targets),
        disk_iops=disk_iops,
        environment=environment,
        capabilities=status.get("CapBnd"),
        no_new_privileges=status.get("NoNewPrivs"),
        id_map=id_map,
        root_mount=mounts_of(mountinfo, ["/"]).get("/"),
        shm_bytes=shm_bytes,
        swap_limit=swap_limit,
        mems_allowed=mems,
        memory_policy=_memory_policy(host, pid, mems),
        pids_limit=pids_limit,
        security_label=security_label(_text(process, f"/proc/{pid}/attr/current")),
        seccomp_filters=status.get("Seccomp_filters"),
        seccomp_digest=None if filtered is None else filtered.digest,
        seccomp_forbids=None if filtered is None else " ".join(filtered.forbids) or "none",
        disk_interface=disks.interface,
        links_io_uring=disks.links_io_uring,
        huge_pages=some(status.get("HugetlbPages")),
        locked_memory=some(status.get("VmLck")),
        swappiness=_in_cgroup(groups, cgroups, paths, "memory", "memory.swappiness"),
        hugetlb_limit=hugetlb_limit(*pages),
        io_weight=next((value for each in weights if (value := _in_cgroup(groups, cgroups, paths, *each))), None),
        network_settings=network_settings,
    )


def _memory_policy(host: Host, pid: int, nodes: str | None) -> str | None:
    """Policy of a process that may use several nodes: `default`, `interleave:0-1`.

    It stands at its first mapping, and no more is read: the kernel walks the page tables of what it prints.
    """
    if nodes is None or nodes.isdecimal():
        return None
    done = host.run(["head", "-c", "200", f"/proc/{pid}/numa_maps"], timeout_s=_DIGEST_S, check=False)
    words = done.text.split(maxsplit=2) if done.code == 0 else []
    return words[1] if len(words) > 1 else None


def scheduler_of(stat: Stat) -> str:
    """Policy of a process, and its niceness if that is not 0: `other`, `batch, nice 15`."""
    policy = _SCHEDULERS.get(stat.policy, str(stat.policy))
    return f"{policy}, nice {stat.niceness}" if stat.niceness else policy


def _last_look(host: Host, pid: int) -> Stat:
    """Check that the process lives after everything else was read, so that all values are its own."""
    raw = host.read(f"/proc/{pid}/stat")
    stat = parse_stat(raw) if raw else None
    if stat is None or stat.exiting or stat.state in _ENDED:
        raise RunFailed(f"process {pid} ended before it could be observed")
    return stat


def parse_status(text: str) -> Mapping[str, str]:
    """Parse /proc/PID/status (proc_pid_status(5)): name → value."""
    lines = [line.partition(":") for line in text.splitlines()]
    return {name.strip(): value.strip() for name, colon, value in lines if colon}


def parse_limits(text: str) -> Mapping[str, str]:
    """Parse /proc/PID/limits: name → "soft hard"; the heading gives the columns."""
    heading, *lines = text.splitlines() or [""]
    soft, hard, units = (heading.find(word) for word in ("Soft Limit", "Hard Limit", "Units"))
    return {line[:soft].strip(): f"{line[soft:hard].strip()} {line[hard:units].strip()}" for line in lines if line}


def parse_environ(text: str) -> Mapping[str, str] | None:
    """Parse /proc/PID/environ: name → value; `None` if it is empty or holds anything but variables.

    A program may overwrite this memory, as those do that show their state in the process list
    (proc_pid_environ(5)).
    """
    entries = text.rstrip("\0").split("\0")
    if not all(_VARIABLE.match(entry) for entry in entries):
        return None
    return {name: value for name, _, value in (entry.partition("=") for entry in entries)}


def parse_id_map(text: str) -> str | None:
    """Put /proc/PID/uid_map (user_namespaces(7)) on one line; `None` if it is empty."""
    return ",".join(":".join(line.split()) for line in text.splitlines() if line.strip()) or None


def mounts_of(mountinfo: str, targets: Sequence[str]) -> Mapping[str, str]:
    """Target → "fstype major:minor" of the mount that it lies on, with the server's address if it has one."""
    mounts = parse_mountinfo(mountinfo)
    covering_mounts = {target: covering(mounts, target) for target in targets}
    return {target: describe_mount(mount) for target, mount in covering_mounts.items() if mount}


def shm_bytes_of(host: Host, pid: int | str, mountinfo: str) -> int | None:
    """Size of the /dev/shm that a process sees. The kernel does not print that of a tmpfs of its default size."""
    mount = covering(parse_mountinfo(mountinfo), SHM)
    if mount is None or mount.target != SHM:
        return None
    for option in mount.super_options:
        name, _, size = option.partition("=")
        if name == "size" and size.endswith("k") and size[:-1].isdecimal():
            return int(size[:-1]) * 1024
    done = host.run(["stat", "-f", "-c", "%b %S", "--", f"/proc/{pid}/root{SHM}"], timeout_s=10, check=False)
    words = done.text.split()
    return int(words[0]) * int(words[1]) if done.code == 0 and len(words) == 2 else None


def network_settings_of(host: Host, pid: int, more: Iterable[str] = ()) -> Mapping[str, str] | None:
    """Sysctls of a process's network namespace; each namespace has its own."""
    names = dict.fromkeys((*NETWORK_SETTINGS, *more))
    return sysctls_in(host, names, ("nsenter", "-t", str(pid), "-n", "--"))


def _cpu_weight(host: Host, cgroups: Cgroups, paths: Mapping[str, str]) -> int | None:
    """CPU weight: cpu.shares on v1 (default 1024), cpu.weight on v2 (default 100)."""
    value = _in_cgroup(host, cgroups, paths, "cpu", "cpu.shares") or _in_cgroup(
        host, cgroups, paths, "cpu", "cpu.weight"
    )
    return None if value is None else int(value)


def _cpu_quota(host: Host, cgroups: Cgroups, paths: Mapping[str, str]) -> float | None:
    """CPU quota in CPUs; `None` without a quota. Raises `RunFailed` if its period cannot be read."""
    if maximum := _in_cgroup(host, cgroups, paths, "cpu", "cpu.max"):
        quota, period = maximum.split()
    else:
        quota = _in_cgroup(host, cgroups, paths, "cpu", "cpu.cfs_quota_us") or "-1"
        period = _in_cgroup(host, cgroups, paths, "cpu", "cpu.cfs_period_us") or ""
    if quota in ("max", "-1"):
        return None
    if not period:
        raise RunFailed("the period of the CPU quota cannot be read")
    return int(quota) / int(period)


def _memory_bytes(host: Host, cgroups: Cgroups, paths: Mapping[str, str]) -> int | None:
    """Hard memory limit in bytes; `None` without a limit."""
    value = _in_cgroup(host, cgroups, paths, "memory", "memory.limit_in_bytes") or _in_cgroup(
        host, cgroups, paths, "memory", "memory.max"
    )
    return None if value in (None, "max") or int(value) >= _V1_NO_LIMIT else int(value)


def _swap_limit(host: Host, cgroups: Cgroups, paths: Mapping[str, str]) -> str | None:
    """Swap beside the memory, in bytes or `max`; v1 limits both together. `None` without swap accounting.

    crun 1.28 gives the scope of systemd's memory and swap together, and the group inside it swap alone.
    """
    both = _in_cgroup(host, cgroups, paths, "memory", "memory.memsw.limit_in_bytes")
    if both is None:
        files = (file_of_group(cgroups, paths, *_SWAP), _own_file(cgroups, paths, *_SWAP))
        seen = [text for file in files if file is not None and (text := _text(host, file)) is not None]
        return min(seen, key=lambda text: math.inf if text == "max" else int(text), default=None)
    memory = _memory_bytes(host, cgroups, paths)
    return "max" if memory is None or int(both) >= _V1_NO_LIMIT else str(max(0, int(both) - memory))


def _disk_iops(host: Host, cgroups: Cgroups, paths: Mapping[str, str]) -> int | None:
    """Lowest limit of reads or writes per second of all disks; `None` without a limit."""
    v1 = [
        _in_cgroup(host, cgroups, paths, "blkio", f"blkio.throttle.{way}_iops_device") for way in ("read", "write")
    ]
    limits = [*v1, _in_cgroup(host, cgroups, paths, "io", "io.max")]
    in_force = [iops for text in limits if text and (iops := iops_in_force(text)) is not None]
    return min(in_force, default=None)


def _in_cgroup(host: Host, cgroups: Cgroups, paths: Mapping[str, str], controller: str, name: str) -> str | None:
    file = file_of_group(cgroups, paths, controller, name)
    return None if file is None else _text(host, file)


def file_of_group(cgroups: Cgroups, paths: Mapping[str, str], controller: str, name: str) -> str | None:
    """Path of a file of the cgroup with the process's limits, in the hierarchy that holds `controller`."""
    return _own_file(cgroups, {names: limited(path) for names, path in paths.items()}, controller, name)


def _own_file(cgroups: Cgroups, paths: Mapping[str, str], controller: str, name: str) -> str | None:
    """The same of the cgroup that the process itself is in."""
    mount = cgroups.mount_of(controller)
    path = next((path for names, path in paths.items() if controller in names.split(",")), paths.get(""))
    return None if mount is None or path is None else f"{mount}/{path.strip('/')}/{name}"


def namespaces_of(host: Host, pid: int | str) -> Mapping[str, str]:
    """Kind of namespace → inode, for the kinds that this kernel has."""
    shown = host.links([f"/proc/{pid}/ns/{kind}" for kind in _NAMESPACES])
    pairs = [link.rstrip("]").partition(":[") for link in shown.values()]
    return {kind: inode for kind, _, inode in pairs}


def _digest(host: Host, pid: int) -> str | None:
    """sha256 of the program, read through /proc/PID/exe; `None` if it cannot be read."""
    done = host.run(["sha256sum", f"/proc/{pid}/exe"], timeout_s=_DIGEST_S, check=False)
    return f"sha256:{done.text.split()[0]}" if done.code == 0 and done.stdout else None


def _text(host: Host, path: str) -> str | None:
    try:
        raw = host.read(path)
    except HostSilent:
        raise
    except RunFailed:
        return None
    return None if raw is None else raw.decode(errors="replace").rstrip("\n")
