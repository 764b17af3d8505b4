"""The bottleneck of each arm's runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tare.analyze.bottleneck import Bottleneck
from tare.analyze.validity.disk import Limit
from tare.report.content import Report
from tare.report.figures import amount
from tare.report.plain import plain
from tare.report.section import EVERYWHERE, PAGES, Column, Section, arm, share

_READING = (
    "Medians over an arm's good runs, from their traces: share of its available CPU time that each side used; "
    "share of the time in which a thread of the SUT waited for I/O; if the study limits disk operations, share "
    "of the time in which the limit delayed the SUT; for the busiest disk, share of the time with requests in "
    "flight, their number, and requests per second. Bound by: what was exhausted in most runs, in use or holding "
    "up for 90 % of the time, "
    "waited for 81 % of it (as others had it), or with its quota of CPU time out in half of the periods."
)
_WORDS: Mapping[Limit, str] = {"client": "client's CPU", "sut": "SUT's CPU", "disk": "disk"}


def bottleneck(report: Report) -> Iterator[Section]:
    """Yield a row for each arm; nothing if no trace shows a disk. Terminals show it for disk-bound studies only."""
    arms = report.analysis.arms
    if not any(each.limits.disk_busy is not None for each in arms):
        return
    limited = any(each.limits.disk_limit_used is not None for each in arms)
    columns = (
        arm(),
        Column("SUT's CPU", share),
        Column("client's CPU", share),
        Column("I/O waits", share),
        *([Column("held by limit", share)] if limited else []),
        Column("disk busy", share),
        Column("under way", amount, optional=1),
        Column("reads/s", amount, optional=1),
        Column("writes/s", amount, optional=1),
        Column("bound by", left=True),
    )
    rows = tuple((plain(each.arm, 80), *_row(each.limits, limited=limited)) for each in arms)
    formats = EVERYWHERE if report.study.disk_bound else PAGES
    yield Section("bottleneck", "Bottleneck", columns, rows, (_READING,), under=True, formats=formats)


def _row(limits: Bottleneck, *, limited: bool) -> tuple[object, ...]:
    return (
        limits.sut_busy,
        limits.client_busy,
        limits.sut_waiting_io,
        *([limits.disk_limit_used] if limited else []),
        limits.disk_busy,
        limits.disk_depth,
        limits.reads_per_s,
        limits.writes_per_s,
        _bound(limits),
    )


def _bound(limits: Bottleneck) -> str | None:
    if limits.reached is None:
        return None
    return ", ".join(_WORDS[each] for each in limits.reached) or "none of these"
