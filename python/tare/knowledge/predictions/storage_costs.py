"""Time and CPU time of reads and writes on one storage relative to another, by the unit costs of kernel events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from scipy.special import stdtrit

from tare.knowledge.event_costs import Event, EventCost
from tare.knowledge.predictions.profile import Disk, Profile
from tare.knowledge.unit_costs import UnitCosts

_SAME_DISK = {"host": "host", "bind": "host"}
"""A bind mount is a directory of the host, with nothing between it and its file system."""
_PAIRS: Mapping[str, tuple[Literal["bare", "container"], str]] = {
    "tmpfs": ("bare", "host"),
    "layer": ("container", "bind"),
    "volume": ("container", "bind"),
}
"""Storage → where both were measured in turns, and the host's directory as reference. Never across two
measurements: a disk's speed drifts more between them than storages differ."""
_LEAST = 0.05
"""Smallest share of the server's CPU time that remains with any storage."""


@dataclass(frozen=True)
class Ratio:
    """Time of an event on a storage over that in a directory of the host; `log_sd`: of its logarithm."""

    value: float
    log_sd: float

    def shifted(self, by: float) -> float:
        """Return the ratio, increased by this many standard deviations."""
        return self.value * math.exp(by * self.log_sd)


@dataclass(frozen=True)
class Added:
    """CPU microseconds of an event on a storage minus those in a directory of the host; `se`: standard error."""

    us: float
    se: float

    def shifted(self, by: float) -> float:
        """Return the difference, increased by this many standard errors."""
        return self.us + by * self.se


@dataclass(frozen=True)
class StorageCosts:
    """Reads and synchronous writes (fsync) on a storage: ratios of time, differences of the caller's CPU time."""

    read: Ratio
    fsync: Ratio
    read_cpu: Added
    write_cpu: Added

    def of(self, written: float, shift: float = 0.0) -> float:
        """Ratio for disk time with the share `written` of writes."""
        return written * self.fsync.shifted(shift) + (1 - written) * self.read.shifted(shift)

    def cpu_us(self, disk: Disk, shift: float = 0.0) -> float:
        """CPU time that an operation uses more on this storage, of the thread that reads and writes."""
        return disk.reads * self.read_cpu.shifted(shift) + disk.writes * self.write_cpu.shifted(shift)


def same_place(one: str | None, other: str | None) -> bool:
    """Whether the data are directly on the same file system."""
    return _SAME_DISK.get(one or "", one) == _SAME_DISK.get(other or "", other)


def storage_costs(costs: UnitCosts, storage: str | None) -> StorageCosts | None:
    """Return costs relative to a directory of the host; `None` for a storage without all measured events."""
    if storage is None or storage not in _PAIRS:
        return None
    read, fsync = _ratio(costs, "read", storage), _ratio(costs, "fsync", storage)
    read_cpu, write_cpu = _added(costs, "read-cpu", storage), _added(costs, "write-cpu", storage)
    if fsync is None or write_cpu is None:
        return None
    # Where reads cannot be timed (no O_DIRECT), they are taken to differ as writes do.
    return StorageCosts(read or fsync, fsync, read_cpu or write_cpu, write_cpu)


def why_no_costs(costs: UnitCosts, storage: str | None, beside: str | None) -> str:
    """Return why `storage_costs` has none beside the baseline's storage, as a clause."""
    if (
        beside == "host"
        and storage is not None
        and storage in _PAIRS
        and _both(costs, "fsync", storage) is not None
    ):
        return f"the CPU time of writes on the storage {storage} was not measured: `tare weigh` does"
    return f"there is no unit cost for the storage {storage}"


def moved(profile: Profile, storage: StorageCosts, shift: float = 0.0) -> Profile:
    """Return the profile with the CPU time that the server's operation has on this storage."""
    if profile.disk is None:
        return profile
    more = storage.cpu_us(profile.disk, shift)
    stations, cpu_us = dict(profile.stations), profile.cpu_us
    if sut := stations.get("sut"):
        us = max(sut.us + more, _LEAST * sut.us)
        stations["sut"] = replace(sut, us=us, used=sut.used * us / sut.us if sut.us else sut.used)
    if cpu_us is not None:
        cpu_us = max(cpu_us + more, _LEAST * cpu_us)
    return replace(profile, stations=stations, cpu_us=cpu_us)


def _both(costs: UnitCosts, event: Event, storage: str) -> tuple[EventCost, EventCost] | None:
    """Return the event on this storage and on its reference."""
    where, beside = _PAIRS[storage]
    seccomp = "default" if where == "container" else None
    known = {
        each.storage: each
        for each in costs.events
        if (each.event, each.where, each.seccomp) == (event, where, seccomp)
    }
    own, other = known.get(storage), known.get(beside)
    return None if own is None or other is None else (own, other)


def _ratio(costs: UnitCosts, event: Event, storage: str) -> Ratio | None:
    both = _both(costs, event, storage)
    if both is None or min(each.ns for each in both) <= 0:
        return None
    own, other = both
    return Ratio(own.ns / other.ns, math.hypot(*(_se(each) / each.ns for each in both)))


def _added(costs: UnitCosts, event: Event, storage: str) -> Added | None:
    both = _both(costs, event, storage)
    if both is None:
        return None
    own, other = both
    return Added((own.ns - other.ns) / 1000, math.hypot(*map(_se, both)) / 1000)


def _se(cost: EventCost) -> float:
    """Standard error in ns; the interval is Student's t over repeats."""
    return (cost.high - cost.low) / 2 / float(stdtrit(cost.n - 1, 0.975))
