"""Checks that a report of YCSB is complete: no line marks its end, and YCSB does not report a full disk.

The checks follow from reports of every kind of measurement of 0.17 and from the 360 published files of 0.12.
"""

from __future__ import annotations

import math
import re

from tare.errors import RunFailed
from tare.workloads.ycsb.output import Printed, Section

_COUNTS = ("Operations", "Total Operations")
_MEANS = ("AverageLatency(us)", "Average")
_PERCENTILES = {"95thPercentileLatency(us)": 0.95, "99thPercentileLatency(us)": 0.99}
_CLEANUP = "CLEANUP"
"""Section for closing the connection, which each thread does and YCSB times."""
_MADE_BY = re.compile(r"(?:Intended-)?(Hdr|Bucket|Raw)?")
"""Prefix of a kind's name, by the measurement that wrote it; sections of one measurement have the same figures."""


def counted(section: Section) -> int | None:
    """Number of operations that a section reports; `None` if it reports none."""
    return next((int(section.figures[name]) for name in _COUNTS if name in section.figures), None)


def is_series(section: Section) -> bool:
    """Whether a section is of `timeseries`, which loses counts when several threads write at the same time."""
    has_average = "AverageLatency(us)" in section.figures
    return has_average and bool(section.buckets) and not any("Percentile" in name for name in _shape(section))


def must_be_one_report(printed: Printed) -> None:
    """Raise `RunFailed` for two reports in one output, and for an invalid count."""
    if printed.repeated is not None:
        raise RunFailed(
            f"YCSB's output holds two reports: {printed.repeated} occurs twice, with different values",
            hint="use one file per phase or run",
        )
    for section in printed.sections.values():
        for name in _COUNTS:
            count = section.figures.get(name, 0.0)
            if not math.isfinite(count) or count != int(count) or count < 0:
                raise RunFailed(f"YCSB counts {count:g} operations in [{section.name}]")


def must_have_every_section_whole(printed: Printed) -> None:
    """Raise `RunFailed` for a section that lacks figures of its measurement, or operations of its histogram."""
    if not any(name.endswith(_CLEANUP) and counted(each) for name, each in printed.sections.items()):
        raise RunFailed(f"YCSB's report is cut short: it lacks [{_CLEANUP}], which every client ends with")
    known: dict[str, frozenset[str]] = {}
    for section in printed.sections.values():
        if not counted(section):  # without operations, some measurements print fewer figures
            _must_not_be_timed(section)
            continue
        made_by = _MADE_BY.match(section.name)
        names = known.setdefault((made_by and made_by.group(1)) or "", _shape(section))
        if names != _shape(section):
            lacking = ", ".join(sorted(names ^ _shape(section)))
            raise RunFailed(f"YCSB's report is cut short: {lacking} is missing for a kind of operation")
        _must_have_every_bucket(section)


def must_count_as_many(counted_operations: float, whole: int, retried: int) -> None:
    """Raise `RunFailed` unless the kinds' operations (`whole`) match YCSB's throughput (`counted_operations`).

    `retried`: failed inserts, which YCSB tries again and counts at most once.
    """
    if not counted_operations - 0.5 < whole < counted_operations + retried + 0.5:
        raise RunFailed(
            "YCSB's report is cut short or of more than one run: its throughput is of "
            f"{counted_operations:.0f} operations, its kinds add up to {whole}"
        )


def _must_not_be_timed(section: Section) -> None:
    if counted(section) is None and any(name in section.figures for name in _MEANS):
        raise RunFailed(f"YCSB's report is cut short: [{section.name}] lacks its number of operations")


def _shape(section: Section) -> frozenset[str]:
    series = ("a histogram or series",) if section.buckets else ()
    return frozenset((*section.figures, *series, *_beyond_the_last_bucket(section)))


def _beyond_the_last_bucket(section: Section) -> tuple[str, ...]:
    """Percentiles that `histogram` cannot report, as too many operations took longer than its last bucket."""
    count = counted(section)
    if section.overflow is None or not count:
        return ()
    within = (count - section.overflow) / count
    return tuple(name for name, share in _PERCENTILES.items() if within < share)


def _must_have_every_bucket(section: Section) -> None:
    """Raise `RunFailed` if a histogram lacks operations. A time series has no percentiles, and means as buckets."""
    if not section.buckets or not any("Percentile" in name for name in _shape(section)):
        return
    held = sum(count for _, count in section.buckets) + (section.overflow or 0)
    if held != counted(section):
        raise RunFailed(
            f"YCSB's report is cut short: the histogram of [{section.name}] has {held:g} of {counted(section)} "
            "operations"
        )
