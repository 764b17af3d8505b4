"""Quantities that the study's source defines, read from the traces of all runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tare.record.run_record import RunRecord
from tare.report.content import Report

if TYPE_CHECKING:
    import polars as pl

    from tare.analyze.quantities import WatchedTrace

Raw = Callable[[RunRecord, str], Path]
"""Returns the path of a record's raw file."""
_MONITORS = "monitors"
_TRACE = f"{_MONITORS}/probe/trace"
_KEPT = "kept"
"""Column of a tool's samples: whether the study keeps the sample."""


def with_quantities(report: Report, records: Sequence[RunRecord], raw: Raw) -> Report:
    """Add the quantities that the study's source defines, computed from records and traces.

    Damaged files are left out, and the notices name them. Raises `StoreError` for a trace without what is computed
    with.
    """
    if report.study.quantities is None:
        return report
    from tare.analyze.quantities import (
        quantities,  # what reads traces is slow to import, and few studies ask for it
    )
    from tare.parquet import readable

    unread: list[str] = []
    with readable("a trace of the study's runs"):
        rows = quantities(report.study, records, lambda record: _what_is_whole(record, raw, unread))
    return replace(report, quantities=rows, unread=tuple(dict.fromkeys((*report.unread, *unread))))


def _what_is_whole(record: RunRecord, raw: Raw, unread: list[str]) -> WatchedTrace:
    """Read the recordings of a run; nothing of one with a damaged file, which goes to `unread`."""
    from tare.analyze.quantities import WatchedTrace
    from tare.analyze.views.summary import not_all_shown
    from tare.errors import StoreError
    from tare.parquet import readable

    try:
        with readable(str(raw(record, _MONITORS))):
            return _seen(record, raw)
    except StoreError as error:
        unread.append(not_all_shown(record, error))
        return WatchedTrace()


def _seen(record: RunRecord, raw: Raw) -> WatchedTrace:
    from tare.analyze.hosts import other_hosts
    from tare.analyze.quantities import WatchedTrace
    from tare.record.raw_files import CLIENT
    from tare.store.trace import is_trace, read_trace

    path, further = raw(record, _TRACE), []
    for host in other_hosts(record):
        there = raw(record, host.trace)
        if host.of != CLIENT and is_trace(there):
            further.append((host, read_trace(there)))
    return WatchedTrace(
        read_trace(path) if is_trace(path) else None,
        _observed(raw(record, _MONITORS)),
        tuple(further),
        one_kernel=record.between is not None and record.between.one_boot,
    )


def _observed(monitors: Path) -> pl.DataFrame | None:
    """Return the kept samples of all tools that watched the run: docs/reference/monitors.md."""
    import polars as pl

    from tare.analyze.views.compute import SCHEMA
    from tare.analyze.views.summary import read_samples

    tables = [read_samples(path) for path in sorted(monitors.glob("*.parquet"))]
    kept = [table.filter(pl.col(_KEPT)) for table in tables if {*SCHEMA, _KEPT} <= set(table.columns)]
    alike = [table.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()) for table in kept]
    return pl.concat(alike) if alike else None
