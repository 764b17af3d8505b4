"""How much of what a system can do a run asked of it, and what limited it, by a rule that the record can answer.

The rule is told in docs/reference/knowledge.md. What it cannot tell stays unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from tare.analyze.numbers import number_at
from tare.analyze.validity.arrivals import SHORT
from tare.analyze.validity.load import BUSY, THROTTLED, busy, limit_reached, part_of_machine
from tare.run.record import RunRecord

Level = Literal["light", "medium", "full"]
LIGHT = 1 / 3
"""Of the SUT's CPU time: from there on the load is called medium."""
WAITING_FOR_DISK = 0.05
"""Of the machine's time: from there on CPU time does not tell how much more the system could do."""
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class LoadTold:
    """`None`: the records do not tell."""

    level: Level | None
    bound: Literal["cpu"] | None


def load_told(runs: Sequence[RunRecord]) -> LoadTold:
    """What more than half of these runs tell."""
    return LoadTold(level=_of_most(runs, _level), bound="cpu" if _of_most(runs, _spent) else None)


def _level(run: RunRecord) -> Level | None:
    cpus, threads = number_at(run.usage, ("sut_cpus",)), number_at(run.settings, ("workload", "threads"))
    offered = threads / cpus if threads is not None and cpus else None
    itself = run.settings.get("client", "") is None  # a program that is the SUT can use no more CPUs than threads
    spent = _spent(run)
    if spent is None:
        return None
    if spent and not (itself and (offered is None or offered < 1)):
        return "full"
    delivered = number_at(run.measurement, ("details", "delivered_share"))
    if delivered is not None and delivered < 1 - SHORT:
        return "full" if limit_reached(run, "client") is False else None
    return _of_cpu(run, offered if delivered is None else busy(run, "sut"), closed=delivered is None)


def _spent(run: RunRecord) -> bool | None:
    """Whether the SUT itself used up its CPU time; `None` also where it waited for CPUs that others had."""
    reached, used = limit_reached(run, "sut"), busy(run, "sut")
    throttled = number_at(run.usage, ("saturation", "sut", "throttled"))
    own = (used is not None and used >= BUSY) or (throttled is not None and throttled >= THROTTLED)
    return None if reached and not own else reached


def _of_cpu(run: RunRecord, share: float | None, *, closed: bool) -> Level | None:
    """By the part of its CPUs that the SUT could use, or used: nothing where it waits for something else."""
    waited = part_of_machine(run, "iowait")
    if share is None or waited is None or waited > WAITING_FOR_DISK or (closed and share >= 1):
        return None
    return "light" if share < LIGHT else "medium"


def _of_most(runs: Sequence[RunRecord], of: Callable[[RunRecord], T | None]) -> T | None:
    told = Counter(of(run) for run in runs)
    return next((answer for answer, n in told.items() if 2 * n > len(runs)), None)
