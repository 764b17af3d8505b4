"""Time of reads and writes on one storage relative to another, by the unit costs of kernel events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtrit

from tare.knowledge.event_costs import EventCost
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


@dataclass(frozen=True)
class Ratio:
    """Time of an event on a storage over that in a directory of the host; `log_sd`: of its logarithm."""

    value: float
    log_sd: float

    def shifted(self, by: float) -> float:
        """Return the ratio, increased by this many standard deviations."""
        return self.value * math.exp(by * self.log_sd)


@dataclass(frozen=True)
class StorageRatios:
    """Ratios of reads and of synchronous writes (fsync)."""

    read: Ratio
    fsync: Ratio

    def of(self, written: float, shift: float = 0.0) -> float:
        """Ratio for disk time with the share `written` of writes."""
        return written * self.fsync.shifted(shift) + (1 - written) * self.read.shifted(shift)


def same_place(one: str | None, other: str | None) -> bool:
    """Whether the data are directly on the same file system."""
    return _SAME_DISK.get(one or "", one) == _SAME_DISK.get(other or "", other)


def storage_ratios(costs: UnitCosts, storage: str | None) -> StorageRatios | None:
    """Return ratios to a directory of the host; `None` for a storage without measured events."""
    if storage is None or storage not in _PAIRS:
        return None
    where, beside = _PAIRS[storage]
    read, fsync = (_ratio(costs, event, where, storage, beside) for event in ("read", "fsync"))
    return None if fsync is None else StorageRatios(fsync if read is None else read, fsync)


def _ratio(costs: UnitCosts, event: str, where: str, storage: str, beside: str) -> Ratio | None:
    own, other = (_event(costs, event, where, name) for name in (storage, beside))
    if own is None or other is None or min(own.ns, other.ns) <= 0:
        return None
    return Ratio(own.ns / other.ns, math.hypot(_sd(own), _sd(other)))


def _event(costs: UnitCosts, event: str, where: str, storage: str) -> EventCost | None:
    seccomp = "default" if where == "container" else None
    wanted = (event, where, seccomp, storage)
    matching = (each for each in costs.events if (each.event, each.where, each.seccomp, each.storage) == wanted)
    return next(matching, None)


def _sd(cost: EventCost) -> float:
    """Standard deviation of the logarithm; the interval is Student's t over repeats."""
    return (cost.high - cost.low) / 2 / float(stdtrit(cost.n - 1, 0.975)) / cost.ns
