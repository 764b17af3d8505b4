"""What set the rate of a run, and whether it was the disk where the study means it to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from tare.analyze.columns import Column, Columns, Rows, figure, known, known_values, reached
from tare.analyze.validity.evidence import Alarm, Evidence, share
from tare.analyze.validity.load import BUSY, WAITING, busy_parts, is_alone, limits_reached
from tare.run.record import RunRecord
from tare.study.rules.levels import is_disk_bound

Limit = Literal["client", "sut", "disk"]
"""The client's CPU time, the SUT's, or the disk."""
LIMITS: tuple[Limit, ...] = ("client", "sut", "disk")


def disk_busy(columns: Columns) -> Column:
    """Share of the measure phase in which the busiest disk had a request under way."""
    return columns.number("usage", "disk", "busy")


def waiting_io(columns: Columns) -> Column:
    """Share of the time in which a thread of the SUT waited for I/O."""
    return columns.number("usage", "saturation", "sut", "waiting_io")


def limit_used(columns: Columns) -> Column:
    """Part of the study's limit on disk operations that the SUT took; not known without such a limit."""
    return columns.number("usage", "disk_limit", "used")


def disks_reached(columns: Columns) -> Column:
    """Whether the busiest disk or a limit of its operations was at its end, or I/O was waited for nearly always.

    By the bounds of CPU time: busy for `BUSY` of the time, that part of the limit used, or waited for in `WAITING`
    of the time. A device that serves many requests at once may do more than it does at that, so it says something
    only while no CPU is at its end. 1, 0, or not known.
    """
    return reached([(disk_busy(columns), BUSY), (limit_used(columns), BUSY), (waiting_io(columns), WAITING)])


def all_reached(columns: Columns) -> Mapping[Limit, Column]:
    """Each of `LIMITS`: 1 where the run reached it, 0 where not, or not known.

    A program that is itself the SUT has no client, and never reaches its limit.
    """
    client = np.where(columns.where(is_alone), 0.0, limits_reached(columns, "client"))
    return {"client": client, "sut": limits_reached(columns, "sut"), "disk": disks_reached(columns)}


def limits_of(run: RunRecord) -> tuple[Limit, ...] | None:
    """Which of `LIMITS` the run reached, none where something else set its rate (locks, say, or the network).

    `None` where none is known to be reached, and of one of them nothing is known.
    """
    values = {limit: figure(column) for limit, column in all_reached(Columns((run,))).items()}
    limits = tuple(limit for limit in LIMITS if values[limit])
    return None if not limits and None in values.values() else limits


def not_disk_bound(evidence: Evidence) -> Iterator[Alarm]:
    """Of an arm that the study means to be bound by the disk, not most runs were, by their traces.

    Such a run has the disk at its end (`disk_reached`) and neither side at the end of its CPU time. Else the arms
    differ by what they cost in CPU time, or in waiting for each other, and the storage beneath hardly shows.
    """
    columns, bound = evidence.columns, [arm for arm in evidence.arms if is_disk_bound(evidence.study, arm)]
    # What is not known is not shown.
    alone = np.all([each == (limit == "disk") for limit, each in all_reached(columns).items()], axis=0)
    for arm in bound:
        rows = evidence.rows(arm)
        others = rows[~alone[rows]]
        if 2 * len(others) >= len(rows):
            yield Alarm(
                "not-disk-bound",
                arm,
                f"the study declares it disk-bound, but {_evidence_text(columns, others)}",
                evidence.ids(others),
                "use more data or less memory, or more CPU time if that ran out; otherwise the difference "
                "between these arms is not a cost of storage",
            )


def _evidence_text(columns: Columns, rows: Rows) -> str:
    """What was seen instead: of each figure the largest of any of these runs."""
    usages = [columns.records[row].usage or {} for row in rows[known(disk_busy(columns)[rows])]]
    disks = sorted({str(usage["disk"]["name"]) for usage in usages})
    figures = (
        (f"the busiest disk ({', '.join(disks)}) was busy", "of the time", disk_busy(columns)),
        ("the limit on disk operations delayed the SUT", "of the time", limit_used(columns)),
        ("the SUT waited for I/O", "of the time", waiting_io(columns)),
        ("the SUT used", "of its CPU time", busy_parts(columns, "sut")),
        ("the client used", "of its own", busy_parts(columns, "client")),
    )
    parts = [
        f"{words} {share(max(values))} {of_what}"
        for words, of_what, column in figures
        if (values := known_values(column[rows]))
    ]
    if not known(disks_reached(columns)[rows]).any():
        parts.insert(0, "no trace shows a disk")
    return f"{', '.join(parts)} at most"
