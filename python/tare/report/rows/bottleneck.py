"""The bottleneck of each arm's runs, as rows of text."""

from __future__ import annotations

from collections.abc import Mapping

from tare.analyze.arms import ArmSummary
from tare.analyze.bottleneck import Bottleneck
from tare.analyze.validity.disk import Limit
from tare.report.content import Report
from tare.report.figures import NONE, amount, percent
from tare.report.plain import plain

LIMIT_TITLE = "Bottleneck"
_COLUMNS = (
    "arm", "SUT's CPU", "client's CPU", "I/O waits", "held by limit", "disk busy", "under way", "reads/s",
    "writes/s", "bound by",
)  # fmt: skip
_HELD = _COLUMNS.index("held by limit")
WIDE_ONLY = ("under way", "reads/s", "writes/s")
"""Columns that a narrow table leaves out."""
LIMIT_READING = (
    "Medians over an arm's good runs, from their traces: share of its available CPU time that each side used; "
    "share of the time in which a thread of the SUT waited for I/O; if the study limits disk operations, share "
    "of the time in which the limit delayed the SUT; for the busiest disk, share of the time with requests in "
    "flight, their number, and requests per second. Bound by: what was exhausted in most runs, in use or holding "
    "up for 90 % of the time, "
    "waited for 81 % of it (as others had it), or with its quota of CPU time out in half of the periods."
)
_WORDS: Mapping[Limit, str] = {"client": "client's CPU", "sut": "SUT's CPU", "disk": "disk"}


def limit_columns(report: Report) -> tuple[str, ...]:
    """Return the headings; the limit's only if the study has a limit."""
    return _COLUMNS if _is_limited(report) else (*_COLUMNS[:_HELD], *_COLUMNS[_HELD + 1 :])


def limits_rows(report: Report) -> tuple[tuple[str, ...], ...]:
    """Return a row for each arm, with the cells of `limit_columns`; nothing if no trace shows a disk."""
    arms, limited = report.analysis.arms, _is_limited(report)
    known = any(arm.limits.disk_busy is not None for arm in arms)
    return tuple(_row(arm, limited=limited) for arm in arms) if known else ()


def _is_limited(report: Report) -> bool:
    return any(arm.limits.disk_limit_used is not None for arm in report.analysis.arms)


def _row(arm: ArmSummary, *, limited: bool) -> tuple[str, ...]:
    limits = arm.limits
    held = (limits.disk_limit_used,) if limited else ()
    shares = (limits.sut_busy, limits.client_busy, limits.sut_waiting_io, *held, limits.disk_busy)
    return (
        plain(arm.arm, 80),
        *(percent(part, signed=False) for part in shares),
        *(amount(value) for value in (limits.disk_depth, limits.reads_per_s, limits.writes_per_s)),
        _bound(limits),
    )


def _bound(limits: Bottleneck) -> str:
    if limits.reached is None:
        return NONE
    return ", ".join(_WORDS[each] for each in limits.reached) or "none of these"
