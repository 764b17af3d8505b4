"""All facts of one server that traps ask for, from /proc, /sys, its engine's description and option files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tare.deployments.mounts import covering, parse_mountinfo
from tare.deployments.observe import FILTERED, SHM, parse_limits, parse_status, shm_bytes_of
from tare.deployments.seccomp import filter_of, forbidden_by_docker, numbers_of, parse
from tare.errors import RunFailed
from tare.inspection.groups import cpu_count, group_of, read_group
from tare.inspection.network import read_network
from tare.inspection.options import MYSQL, options_of
from tare.inspection.readings import NEEDS_ROOT, Readings
from tare.inspection.subject import KNOWN, Subject, tag_of
from tare.sites import Host
from tare.sites.facts import host_facts
from tare.sites.reading import answer, as_int, number, text
from tare.traps.predicate import NONE

_KIB = 1024
_SAVES_TO_CWD = frozenset({"redis", "valkey"})
_DEFAULT_CHECK_S = 30.0
_DAMON = "/sys/kernel/mm/damon"
_OPEN = re.compile(r" -> (/.+?)(?: \(deleted\))?$")
_NOT_DATA = ("/dev/", "/proc/", "/sys/", "/tmp/", "/var/log/", "/run/", "/usr/", "/lib", "/etc/")  # noqa: S108 - names in a list


def gather(host: Host, subject: Subject) -> Readings:
    """Read the facts of a server. A fact that cannot be read is kept with the reason."""
    facts = Readings()
    known = subject.database if subject.database in KNOWN else None
    facts.put(
        "database", known, f"/proc/{subject.pid}/comm", "the program is none of the databases that tare knows"
    )
    facts.put("placed", subject.placed, f"/proc/{subject.pid}/cgroup")
    facts.put("engine", subject.engine, "who knows its container")
    _process(host, subject, facts)
    read_group(group_of(host, subject.pid), facts)
    _places(host, subject.pid, subject.database, facts)
    read_network(host, subject, facts)
    _container(host, subject, facts)
    _settings(host, subject, facts)
    _host(host, facts)
    return facts


def _process(host: Host, subject: Subject, facts: Readings) -> None:
    own = f"/proc/{subject.pid}"
    status = parse_status(text(host, f"{own}/status") or "")
    limits = parse_limits(text(host, f"{own}/limits") or "")
    facts.put("limits.nofile", as_int(_soft(limits, "Max open files")), f"{own}/limits")
    for name, line in (("limits.memlock_bytes", "Max locked memory"), ("limits.nproc", "Max processes")):
        soft = _soft(limits, line)
        facts.put(name, NONE if soft == "unlimited" else as_int(soft), f"{own}/limits")
    facts.put("process.threads", as_int(status.get("Threads")), f"{own}/status")
    facts.put("process.oom_score_adj", number(host, f"{own}/oom_score_adj"), f"{own}/oom_score_adj")
    for name, line in (("process.swap_bytes", "VmSwap"), ("process.hugetlb_bytes", "HugetlbPages")):
        # a kernel without swap or huge pages leaves the line out
        facts.put(name, _kib(status.get(line, "0 kB")) if status else None, f"{own}/status: {line}")
    bypass = status.get("Speculation_Store_Bypass")
    facts.put("process.speculation_store_bypass", bypass, f"{own}/status", "this kernel does not report it")
    facts.put("cgroup.cpus", cpu_count(status.get("Cpus_allowed_list")), f"{own}/status: Cpus_allowed_list")
    facts.put("seccomp.mode", as_int(status.get("Seccomp")), f"{own}/status: Seccomp")
    _filter(host, subject, status, facts)
    exe = answer(host, ["readlink", f"{own}/exe"]).strip().rpartition("/")[2]
    facts.put("process.exe", exe or None, f"{own}/exe")
    facts.put("process.emulated", exe.startswith("qemu-") if exe else None, f"{own}/exe")
    maps = text(host, f"{own}/maps")
    facts.put("process.links_io_uring", None if maps is None else "/liburing" in maps, f"{own}/maps")
    facts.put(
        "image.libc", _libc(maps), f"{own}/maps", "the program is linked statically, or only root may read it"
    )
    opened = answer(host, ["find", f"{own}/fd", "-lname", "anon_inode:*", "-printf", "%l\n"], partial=True)
    rings = "io_uring" if "io_uring" in opened else "libaio" if "/[aio]" in (maps or "") else NONE
    facts.put("process.io", None if maps is None else rings, f"{own}/fd and {own}/maps")


def _filter(host: Host, subject: Subject, status: Mapping[str, str], facts: Readings) -> None:
    """Calls that the seccomp filter forbids: by the runtime's configuration, else by the engine's options."""
    fact, mode = "seccomp.forbids", status.get("Seccomp")
    if mode != FILTERED:
        facts.put(fact, NONE if mode == "0" else None, f"/proc/{subject.pid}/status: Seccomp")
        return
    if (known := filter_of(host, subject.pid)) is not None:
        facts.put(fact, known.forbids or NONE, f"config.json of its bundle ({known.digest[:15]})")
        return
    options = ((subject.attrs.get("HostConfig") or {}).get("SecurityOpt")) or ()
    given = next((each.partition("=")[2] for each in options if each.startswith("seccomp=")), None)
    held = numbers_of(status.get("CapBnd"))
    if given is not None and given.startswith("{"):
        facts.put(fact, parse(json.loads(given), held).forbids or NONE, "the profile that the engine was given")
    elif given is None and subject.engine == "docker" and subject.engine_version is not None:
        calls = tuple(forbidden_by_docker(subject.engine_version, held))
        facts.put(fact, calls or NONE, f"the default profile of Docker {subject.engine_version}")
    else:
        facts.put(fact, None, "config.json of its bundle")


def _soft(limits: Mapping[str, str], line: str) -> str | None:
    return limits[line].split()[0] if line in limits else None


def _kib(value: str | None) -> int | None:
    kib = as_int(value.removesuffix(" kB")) if value else None
    return None if kib is None else kib * _KIB


def _libc(maps: str | None) -> str | None:
    if maps is None:
        return None
    return "musl" if "/ld-musl" in maps else "glibc" if re.search(r"/libc[.-]", maps) else None


def _places(host: Host, pid: int, database: str, facts: Readings) -> None:
    """File systems of the root, of /dev/shm and of the data."""
    own = f"/proc/{pid}"
    mountinfo = text(host, f"{own}/mountinfo") or ""
    mounts = parse_mountinfo(mountinfo)
    root, shm = covering(mounts, "/"), covering(mounts, SHM)
    facts.put("root.filesystem", root.fstype if root else None, f"{own}/mountinfo")
    there = shm is not None and shm.target == SHM
    size = shm_bytes_of(host, pid, mountinfo)
    facts.put("shm.bytes", NONE if mounts and not there else size, f"{own}/mountinfo: {SHM}")
    free = answer(host, ["stat", "-f", "-c", "%b %a", "--", f"{own}/root{SHM}"]).split()
    used = None if len(free) != 2 or not int(free[0]) else 1 - int(free[1]) / int(free[0])
    facts.put("shm.used_share", used, f"{own}/root{SHM}")
    path = data_path(host, pid, database)
    unseen = NEEDS_ROOT if not answer(host, ["readlink", f"{own}/cwd"]) else "it holds no file of data open"
    facts.put("data.path", path, f"{own}/cwd and {own}/fd", unseen)
    data = covering(mounts, path) if path else None
    facts.put("data.filesystem", data.fstype if data else None, f"{own}/mountinfo: {path or 'data'}", unseen)


def data_path(host: Host, pid: int, database: str = "") -> str | None:
    """Directory of a server's data: its working directory, else that of a file that it holds open for writing.

    Redis always saves into its working directory.
    """
    cwd = answer(host, ["readlink", f"/proc/{pid}/cwd"]).strip()
    if cwd and (cwd != "/" or database in _SAVES_TO_CWD):
        return cwd
    writable = ["find", f"/proc/{pid}/fd", "-type", "l", "-perm", "-200", "-printf", "x -> %l\n"]
    listed = answer(host, writable, partial=True)
    opened = [found[1] for line in listed.splitlines() if (found := _OPEN.search(line))]
    data = [path for path in opened if path.startswith("/") and not path.startswith(_NOT_DATA)]
    return min(data, key=len).rpartition("/")[0] or None if data else None


def _container(host: Host, subject: Subject, facts: Readings) -> None:
    """What the engine says of the container; for a process without one, that there is none."""
    attrs, where = subject.attrs, f"{subject.engine} inspect"
    alone = subject.placed == "process"
    why = subject.unasked or "no engine knows its container"
    given: Mapping[str, Any] = attrs.get("HostConfig") or {}
    config: Mapping[str, Any] = attrs.get("Config") or {}
    log: Mapping[str, Any] = given.get("LogConfig") or {}
    runtime = given.get("Runtime") or given.get("OCIRuntime") or attrs.get("OCIRuntime")
    facts.put("runtime", NONE if alone else runtime, where, why)
    facts.put("image.tag", NONE if alone else tag_of(config.get("Image"), attrs.get("Image")), where, why)
    facts.put("log.driver", NONE if alone else log.get("Type"), where, why)
    limited = log.get("Type") == "local" or "max-size" in (log.get("Config") or {})
    facts.put("log.rotates", True if alone else limited if attrs else None, where, why)
    no_file = "its log is no file" if attrs else why
    facts.put("log.bytes", log_bytes(host, subject), "size of the log's file", no_file)
    facts.put("data.read_only_root", False if alone else given.get("ReadonlyRootfs"), where, why)
    check: Mapping[str, Any] = config.get("Healthcheck") or {}
    wanted = (check.get("Test") or ["NONE"])[0] != "NONE"
    seconds = (check.get("Interval") or 0) / 1e9 or _DEFAULT_CHECK_S
    facts.put("health.interval_s", None if not alone and not attrs else seconds if wanted else NONE, where, why)
    for name, value in subject.specified.items():
        facts.put(name, value, "the pod's specification")


def log_bytes(host: Host, subject: Subject) -> int | None:
    """Size of the container's log."""
    path = subject.attrs.get("LogPath")
    return as_int(answer(host, ["stat", "-c", "%s", "--", path]).strip()) if path else None


def _settings(host: Host, subject: Subject, facts: Readings) -> None:
    own = f"/proc/{subject.pid}"
    path = facts.facts.get("data.path")
    data = path if isinstance(path, str) else None
    options = options_of(host, subject.pid, subject.database, data, subject.command)
    facts.put("cache.bytes", options.cache_bytes, options.cache_from, "not set there: the server's default holds")
    facts.put("jvm.heap_bytes", options.heap_bytes, "command line: -Xmx", "not set there, or no JVM")
    facts.put(
        "settings.skip_name_resolve",
        options.skip_name_resolve,
        "command line and option files",
        "not MySQL's family",
    )
    character_set = options.character_set and options.character_set.lower()
    unset = "it is unset, and the default depends on the version"
    if subject.database not in MYSQL:
        unset = "not MySQL's family"
    facts.put("settings.character_set", character_set, "command line and option files", unset)
    try:
        environment = text(host, f"{own}/environ")
    except RunFailed:
        environment = None
    names = {entry.partition("=")[0] for entry in (environment or "").split("\0")}
    facts.put("environment.gomaxprocs", None if environment is None else "GOMAXPROCS" in names, f"{own}/environ")


def _host(host: Host, facts: Readings) -> None:
    """Facts of the host, by the same reader as in every run, and a few more."""
    seen, where = host_facts(host), "the facts that each run records"
    for name in (
        "thp", "huge_pages", "swap_total_bytes", "memory_total_bytes", "clocksource", "cpu_steal_fraction",
        "netfilter_conntrack", "netfilter_rules", "bridge_nf_call_iptables",
    ):  # fmt: skip
        facts.put(f"host.{name}", getattr(seen, name), where)
    if seen.thp is None:
        facts.put("host.thp", NONE, "this kernel has none")
    if seen.huge_pages is None:
        facts.put("host.huge_pages", 0, "/proc/meminfo has none")
    if seen.bridge_nf_call_iptables is None:
        facts.put("host.bridge_nf_call_iptables", False, "br_netfilter is not loaded")  # noqa: FBT003 - the fact's value
    governors, reclaim = seen.cpu_governors, seen.proactive_reclaim
    facts.put("host.cpu_governors", tuple(governors) if governors else NONE, where)
    hidden = reclaim is None and bool(answer(host, ["find", _DAMON, "-maxdepth", "0"]))
    facts.put("host.proactive_reclaim", tuple(reclaim) if reclaim else None if hidden else NONE, where)
    facts.put("host.numa_nodes", len(seen.cpu_numa_nodes or {}) or None, where, "the kernel shows no nodes")
    for name in ("overcommit_memory", "max_map_count"):
        facts.put(f"host.{name}", number(host, f"/proc/sys/vm/{name}"), f"/proc/sys/vm/{name}")
    _share(host, facts, "host.aio_share", "/proc/sys/fs/aio-nr", "/proc/sys/fs/aio-max-nr")
    netfilter = "/proc/sys/net/netfilter"
    _share(host, facts, "host.conntrack_share", f"{netfilter}/nf_conntrack_count", f"{netfilter}/nf_conntrack_max")


def _share(host: Host, facts: Readings, name: str, used: str, most: str) -> None:
    count, limit = number(host, used), number(host, most)
    absent = 0.0 if limit is None else None
    share = absent if count is None or not limit else count / limit
    facts.put(name, share, f"{used} and {most.rpartition('/')[2]}")
