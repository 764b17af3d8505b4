"""What set the rate of a run, and whether it was the disk where the study means it to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from tare.analyze.numbers import number_at
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share
from tare.analyze.validity.load import BUSY, WAITING, busy, limit_reached
from tare.run.record import RunRecord
from tare.study.rules.levels import is_disk_bound

Limit = Literal["client", "sut", "disk"]
"""The client's CPU time, the SUT's, or the disk."""
LIMITS: tuple[Limit, ...] = ("client", "sut", "disk")


def disk_busy(run: RunRecord) -> float | None:
    """Share of the measure phase in which the busiest disk had a request under way."""
    return number_at(run.usage, ("disk", "busy"))


def waiting_io(run: RunRecord) -> float | None:
    """Share of the time in which a thread of the SUT waited for I/O."""
    return number_at(run.usage, ("saturation", "sut", "waiting_io"))


def limit_used(run: RunRecord) -> float | None:
    """Part of the study's limit on disk operations that the SUT took; `None` without such a limit."""
    return number_at(run.usage, ("disk_limit", "used"))


def disk_reached(run: RunRecord) -> bool | None:
    """Whether the busiest disk or a limit of its operations was at its end, or I/O was waited for nearly always.

    By the bounds of CPU time: busy for `BUSY` of the time, that part of the limit used, or waited for in `WAITING`
    of the time. A device that serves many requests at once may do more than it does at that, so it says something
    only while no CPU is at its end. `None`: not known.
    """
    limits = ((disk_busy(run), BUSY), (limit_used(run), BUSY), (waiting_io(run), WAITING))
    known = [value >= limit for value, limit in limits if value is not None]
    return any(known) if known else None


def limits_of(run: RunRecord) -> tuple[Limit, ...] | None:
    """Which of `LIMITS` the run reached, none where something else set its rate (locks, say, or the network).

    `None` where none is known to be reached, and of one of them nothing is known.
    """
    reached = _reached(run)
    limits = tuple(limit for limit in LIMITS if reached.get(limit))
    return None if not limits and None in reached.values() else limits


def not_disk_bound(evidence: Evidence) -> Iterator[Alarm]:
    """Of an arm that the study means to be bound by the disk, not most runs were, by their traces.

    Such a run has the disk at its end (`disk_reached`) and neither side at the end of its CPU time. Else the arms
    differ by what they cost in CPU time, or in waiting for each other, and the storage beneath hardly shows.
    """
    for arm in evidence.arms:
        if not is_disk_bound(evidence.study, arm):
            continue
        good = evidence.good(arm)
        others = [run for run in good if not _by_disk_alone(run)]
        if 2 * len(others) >= len(good):
            yield Alarm(
                "not-disk-bound",
                arm,
                f"the study declares it disk-bound, but {_evidence_text(others)}",
                ids(others),
                "use more data or less memory, or more CPU time if that ran out; otherwise the difference "
                "between these arms is not a cost of storage",
            )


def _reached(run: RunRecord) -> dict[Limit, bool | None]:
    """A program that is itself the SUT has no client."""
    alone = run.settings.get("client", "") is None
    of_client: dict[Limit, bool | None] = {} if alone else {"client": limit_reached(run, "client")}
    return {**of_client, "sut": limit_reached(run, "sut"), "disk": disk_reached(run)}


def _by_disk_alone(run: RunRecord) -> bool:
    """What is not known is not shown."""
    return all(reached is (limit == "disk") for limit, reached in _reached(run).items())


def _evidence_text(runs: Sequence[RunRecord]) -> str:
    """What was seen instead: of each figure the largest of any of these runs."""
    disks = sorted({str(run.usage["disk"]["name"]) for run in runs if run.usage and disk_busy(run) is not None})
    figures = (
        (f"the busiest disk ({', '.join(disks)}) was busy", "of the time", disk_busy),
        ("the limit on disk operations delayed the SUT", "of the time", limit_used),
        ("the SUT waited for I/O", "of the time", waiting_io),
        ("the SUT used", "of its CPU time", partial(busy, side="sut")),
        ("the client used", "of its own", partial(busy, side="client")),
    )
    parts = [
        f"{words} {share(max(known))} {of_what}"
        for words, of_what, read in figures
        if (known := [value for run in runs if (value := read(run)) is not None])
    ]
    if all(disk_reached(run) is None for run in runs):
        parts.insert(0, "no trace shows a disk")
    return f"{', '.join(parts)} at most"
