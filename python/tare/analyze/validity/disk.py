"""What limited the rate of a run, and a rule for runs that the study declares disk-bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from tare.analyze.columns import Column, Columns, Rows, figure, known, known_values, reached
from tare.analyze.validity.evidence import Alarm, Evidence, share
from tare.analyze.validity.load import BUSY, WAITING, busy_parts, is_alone, limits_reached
from tare.record.run_record import RunRecord
from tare.study.rules.levels import is_disk_bound

Limit = Literal["client", "sut", "disk"]
"""Limits of a rate: the client's CPU time, the SUT's CPU time, or the disk."""
LIMITS: tuple[Limit, ...] = ("client", "sut", "disk")


def disk_busy(columns: Columns) -> Column:
    """Share of the measure phase in which the busiest disk had a request in progress."""
    return columns.number("usage", "disk", "busy")


def waiting_io(columns: Columns) -> Column:
    """Share of the time in which a thread of the SUT waited for I/O."""
    return columns.number("usage", "saturation", "sut", "waiting_io")


def limit_used(columns: Columns) -> Column:
    """Used share of the study's limit on disk operations; unknown without such a limit."""
    return columns.number("usage", "disk_limit", "used")


def disks_reached(columns: Columns) -> Column:
    """Whether the disk or a limit on its operations was exhausted, or I/O was waited for nearly all the time.

    With the bounds of CPU time: the busiest disk was busy for `BUSY` of the time, that share of the limit was used,
    or I/O was waited for in `WAITING` of the time. A device that serves many requests at once may have capacity
    left then, so the flag counts only while no CPU time is exhausted. 1, 0, or unknown.
    """
    return reached([(disk_busy(columns), BUSY), (limit_used(columns), BUSY), (waiting_io(columns), WAITING)])


def all_reached(columns: Columns) -> Mapping[Limit, Column]:
    """Column of each of `LIMITS`: 1 if the run reached it, 0 if not, or unknown.

    A program that is itself the SUT has no client, and so never reaches the client's limit.
    """
    client = np.where(columns.where(is_alone), 0.0, limits_reached(columns, "client"))
    return {"client": client, "sut": limits_reached(columns, "sut"), "disk": disks_reached(columns)}


def limits_of(run: RunRecord) -> tuple[Limit, ...] | None:
    """Limits that the run reached; empty if something else limited its rate, such as locks or the network.

    `None` if no limit is known to be reached, and any of them is unknown.
    """
    values = {limit: figure(column) for limit, column in all_reached(Columns((run,))).items()}
    limits = tuple(limit for limit in LIMITS if values[limit])
    return None if not limits and None in values.values() else limits


def not_disk_bound(evidence: Evidence) -> Iterator[Alarm]:
    """Half or more of the runs of an arm that the study declares disk-bound were not, by their traces.

    A disk-bound run exhausts the disk (`disks_reached`), and neither side exhausts its CPU time. Otherwise arms
    differ by their cost in CPU time, or in waiting for each other, and the storage hardly matters.
    """
    columns, bound = evidence.columns, [arm for arm in evidence.arms if is_disk_bound(evidence.study, arm)]
    # An unknown limit is not evidence.
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
    """Text on the figures of these runs: the largest value of each."""
    usages = [columns.records[row].usage for row in rows]
    disks = sorted({usage.disk.name for usage in usages if usage and usage.disk and usage.disk.busy is not None})
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
