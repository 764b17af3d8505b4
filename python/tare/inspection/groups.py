"""Facts of the control group that a server is in: limits, of which the lowest of all parents counts, and counters.

Sources: Documentation/admin-guide/cgroup-v1/, cgroup-v2.rst of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tare.deployments.cgroup.hierarchy import Cgroups, cgroups_of, parse_proc_cgroup
from tare.inspection.readings import Readings
from tare.sites import Host
from tare.sites.reading import as_int, cpu_list, text

_V1_NO_LIMIT = 1 << 62
_DEFAULT_SHARES, _DEFAULT_WEIGHT = 1024, 100


@dataclass(frozen=True)
class Group:
    """The control group of a process, in the hierarchies of both versions."""

    host: Host
    cgroups: Cgroups
    paths: dict[str, str]

    def files(self, controller: str, name: str) -> Iterator[str]:
        """Yield a file of the process's own group, then of its parents up to the root."""
        mount = self.cgroups.mount_of(controller)
        path = next((path for names, path in self.paths.items() if controller in names.split(",")), None)
        path = self.paths.get("") if path is None else path
        if mount is None or path is None:
            return
        parts = [part for part in path.split("/") if part]
        for end in range(len(parts), -1, -1):
            yield "/".join([mount, *parts[:end], name])

    def own(self, controller: str, *names: str) -> tuple[str | None, str]:
        """Content and path of the first of these files that the own group has."""
        place = names[0]
        for name in names:
            place = next(self.files(controller, name), name)
            if (content := text(self.host, place)) is not None:
                return content, place
        return None, place

    def lowest(
        self, controller: str, names: tuple[str, ...], parse: Callable[[str, str], float | None]
    ) -> tuple[float | None, str, bool]:
        """Lowest limit of the group and its parents, where it is, and whether any file could be read."""
        seen: list[tuple[float, str]] = []
        place, read = names[0], False
        for name in names:
            for file in self.files(controller, name):
                content = text(self.host, file)
                if content is None:
                    continue
                place, read = (file, True) if not read else (place, True)
                if (value := parse(content, file)) is not None:
                    seen.append((value, file))
        if not seen:
            return None, place, read or self._is_root(controller)
        value, at = min(seen)
        return value, at, True

    def _is_root(self, controller: str) -> bool:
        """Whether the process is in the root group, which has no limits and no files of them."""
        files = list(self.files(controller, ""))
        return len(files) == 1


def group_of(host: Host, pid: int) -> Group:
    """The control group of a process."""
    return Group(host, cgroups_of(host), parse_proc_cgroup(text(host, f"/proc/{pid}/cgroup") or ""))


def read_group(group: Group, facts: Readings) -> None:
    """Read limits and counters of the group."""
    limit, where, read = group.lowest("memory", ("memory.max", "memory.limit_in_bytes"), _bytes)
    facts.limit("cgroup.memory_limit_bytes", None if limit is None else int(limit), where, read=read)
    used, where = group.own("memory", "memory.current", "memory.usage_in_bytes")
    facts.put("cgroup.memory_used_bytes", as_int(used), where, "no such file")
    high, where, high_read = group.lowest("memory", ("memory.high",), _bytes)
    facts.limit("cgroup.memory_high_bytes", None if high is None else int(high), where, read=high_read or read)
    _swap(group, facts, limit)
    kills, where = oom_kills(group)
    facts.put("cgroup.oom_kills", kills, where, "no such file")
    quota, where, read = group.lowest("cpu", ("cpu.max", "cpu.cfs_quota_us"), _quota(group))
    facts.limit("cgroup.cpu_quota", quota, where, read=read)
    counts, where = throttling(group)
    share = None if counts is None else counts[1] / counts[0] if counts[0] else 0.0
    facts.put("cgroup.throttled_share", share, where, "no such file")
    weight, where = group.own("cpu", "cpu.weight", "cpu.shares")
    usual = _DEFAULT_WEIGHT if where.endswith("weight") else _DEFAULT_SHARES
    facts.put("cgroup.cpu_weight_ratio", None if weight is None else int(weight) / usual, where, "no such file")
    allowed, where, read = group.lowest("pids", ("pids.max",), _bytes)
    facts.limit("cgroup.pids_limit", None if allowed is None else int(allowed), where, read=read)
    tasks, where = group.own("pids", "pids.current")
    facts.put("cgroup.pids", as_int(tasks), where, "not counted in the root group")
    names = ("hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes")
    huge, where, read = group.lowest("hugetlb", names, _bytes)
    facts.put("cgroup.hugetlb_limited", huge == 0 if read else False, where)


def _swap(group: Group, facts: Readings, limit: float | None) -> None:
    both, where, read = group.lowest("memory", ("memory.memsw.limit_in_bytes",), _bytes)
    if read:
        allowed = None if both is None else max(0, int(both - (limit or 0)))
    else:
        swap, where, read = group.lowest("memory", ("memory.swap.max",), _bytes)
        allowed = None if swap is None else int(swap)
    facts.limit("cgroup.swap_allowed_bytes", allowed, where, read=read)


def oom_kills(group: Group) -> tuple[int | None, str]:
    """Programs of the group that the kernel killed for memory since it was made."""
    content, where = group.own("memory", "memory.events", "memory.oom_control")
    words = dict(line.split()[:2] for line in (content or "").splitlines() if len(line.split()) == 2)
    return as_int(words.get("oom_kill")), where


def throttling(group: Group) -> tuple[tuple[int, int] | None, str]:
    """Periods of the quota, and those in which it ran out, of the group with the lowest quota."""
    quota = group.lowest("cpu", ("cpu.max", "cpu.cfs_quota_us"), _quota(group))
    folder = quota[1].rpartition("/")[0]
    place = f"{folder}/cpu.stat"
    words = dict(line.split()[:2] for line in (text(group.host, place) or "").splitlines() if " " in line)
    periods, throttled = as_int(words.get("nr_periods")), as_int(words.get("nr_throttled"))
    if periods is None or throttled is None:
        return ((0, 0) if quota[0] is None and quota[2] else None), place
    return (periods, throttled), place


def _bytes(content: str, _: str) -> float | None:
    value = as_int(content)
    return None if value is None or value >= _V1_NO_LIMIT else value


def _quota(group: Group) -> Callable[[str, str], float | None]:
    def parse(content: str, file: str) -> float | None:
        words = content.split()
        if len(words) == 1:
            words.append(text(group.host, file.replace("cfs_quota_us", "cfs_period_us")) or "")
        quota, period = as_int(words[0]), as_int(words[1])
        return None if quota is None or quota <= 0 or not period else quota / period

    return parse


def cpu_count(content: str | None) -> int | None:
    """Number of CPUs of a list."""
    listed = cpu_list(content)
    return None if listed is None else len(listed)
