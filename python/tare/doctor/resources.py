"""Checks of a host's memory, disk, cgroups and counters, from its facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tare.doctor import Line, cannot, ok, warning
from tare.record.host_facts import HostFacts
from tare.requirements.resources import DISK

GIB = 2**30


@dataclass(frozen=True)
class Need:
    """`least`: bytes below which no study runs; `good`: bytes below which only small studies run."""

    least: int
    good: int


_MEMORY = Need(1 * GIB, 3 * GIB)
_DISK = Need(3 * GIB, 20 * GIB)
"""The demo takes about 2 GiB: one image twice (unpacked and in the engine), one loaded data set and its copies."""
_NEEDED_CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})


def resource_lines(facts: HostFacts) -> Iterator[Line]:
    """Lines on the facts of `host_facts`."""
    yield _swap(facts)
    yield _huge_pages(facts.thp)
    yield _reclaim(facts.proactive_reclaim)
    yield _cgroups(facts)
    yield _counters(facts.perf_event_paranoid)
    if facts.in_container:
        yield warning(
            "surroundings",
            "tare itself seems to run in a container",
            "run it on the host: here its cgroups and mounts may be misleading",
        )


def memory_line(facts: HostFacts) -> Line:
    """Whether memory is free for a study."""
    return _enough("memory", facts.memory_available_bytes, _MEMORY, "free some memory")


def disk_line(facts: HostFacts) -> Line:
    """Whether disk is free for a study's data and images."""
    where = f" at {facts.data_path} ({facts.data_filesystem or 'file system unknown'})"
    return _enough("disk", facts.data_free_bytes, _DISK, DISK.hint, where=where)


def _enough(name: str, free: int | None, need: Need, advice: str, *, where: str = "") -> Line:
    if free is None:
        return warning(name, f"free space cannot be read{where}", advice)
    observed = f"{free / GIB:.1f} GiB free{where}"
    if free < need.least:
        return cannot(name, observed, f"{advice}: the demo needs {need.least / GIB:.0f} GiB")
    if free < need.good:
        return warning(name, observed, f"{advice}: full-size studies need more than the demo")
    return ok(name, observed)


def _swap(facts: HostFacts) -> Line:
    total, used = facts.swap_total_bytes, facts.swap_used_bytes
    if total is None or used is None:
        return warning("swap", "cannot be read", "mount /proc")
    if used > 0:
        return warning("swap", f"{used / GIB:.2f} GiB in use", "free memory, then swapoff --all while measuring")
    return ok("swap", "none" if total == 0 else f"{total / GIB:.1f} GiB, not in use")


def _huge_pages(thp: str | None) -> Line:
    if thp == "always":
        return warning(
            "huge pages",
            "transparent huge pages are always on: memory compaction causes pauses",
            "while measuring: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    return ok("huge pages", "not visible here" if thp is None else f"transparent ones: {thp}")


def _reclaim(reclaimers: Sequence[str] | None) -> Line:
    """Reclaim removes pages that were read ahead of a run: docs/journal/probe.md."""
    if reclaimers:
        return warning(
            "proactive reclaim",
            f"the kernel reclaims cold pages even while memory is free: {', '.join(reclaimers)}",
            f"while measuring: {'; '.join(_how_off(name) for name in reclaimers)}",
        )
    return ok("proactive reclaim", "not visible here" if reclaimers is None else "none")


def _how_off(name: str) -> str:
    kind, _, number = name.partition(" ")
    if kind == "kdamond":
        return f"echo off > /sys/kernel/mm/damon/admin/kdamonds/{number}/state"
    return "echo N > /sys/module/damon_reclaim/parameters/enabled"


def _cgroups(facts: HostFacts) -> Line:
    layout, controllers = facts.cgroup_layout, facts.cgroup_controllers
    if layout is None or controllers is None:
        return cannot("cgroups", "no cgroup hierarchy is mounted", "mount /sys/fs/cgroup: see cgroups(7)")
    missing = sorted(_NEEDED_CONTROLLERS - set(controllers))
    if missing:
        return cannot(
            "cgroups",
            f"{layout}, without {', '.join(missing)}",
            "enable the controllers at boot, or delegate them: see cgroups(7)",
        )
    return ok("cgroups", f"{layout}, with {', '.join(sorted(_NEEDED_CONTROLLERS))}")


def _counters(paranoid: int | None) -> Line:
    if paranoid is None:
        return warning("performance counters", "the kernel has none", "CPU counters will be missing from results")
    return ok(
        "performance counters", f"perf_event_paranoid {paranoid}: " + ("root only" if paranoid > 1 else "open")
    )
